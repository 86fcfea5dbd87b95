"""Distillation loss: one program a row; passes for the maxima, the sums and the divergence."""

import torch
import triton
import triton.language as tl


@triton.jit
def kl_div_kernel(
    student_ptr,
    teacher_ptr,
    loss_ptr,
    student_stride,
    teacher_stride,
    classes,
    temperature,
    BLOCK: tl.constexpr,
):
    """Computes the loss of one row."""
    row = tl.program_id(0).to(tl.int64)
    student_row = student_ptr + row * student_stride
    teacher_row = teacher_ptr + row * teacher_stride
    lane = tl.arange(0, BLOCK)
    low = float("-inf")

    student_top = tl.full([BLOCK], low, tl.float32)
    teacher_top = tl.full([BLOCK], low, tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        s = tl.load(student_row + at, mask=at < classes, other=low).to(tl.float32)
        t = tl.load(teacher_row + at, mask=at < classes, other=low).to(tl.float32)
        student_top = tl.maximum(student_top, s)
        teacher_top = tl.maximum(teacher_top, t)
    student_max = tl.max(student_top, axis=0)
    teacher_max = tl.max(teacher_top, axis=0)

    student_sum = tl.zeros([BLOCK], tl.float32)
    teacher_sum = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        s = tl.load(student_row + at, mask=at < classes, other=low).to(tl.float32)
        t = tl.load(teacher_row + at, mask=at < classes, other=low).to(tl.float32)
        student_sum += tl.exp((s - student_max) / temperature)
        teacher_sum += tl.exp((t - teacher_max) / temperature)
    student_log = tl.log(tl.sum(student_sum, axis=0))
    teacher_log = tl.log(tl.sum(teacher_sum, axis=0))

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        s = tl.load(student_row + at, mask=at < classes, other=0.0).to(tl.float32)
        t = tl.load(teacher_row + at, mask=at < classes, other=0.0).to(tl.float32)
        log_q = (s - student_max) / temperature - student_log
        log_p = (t - teacher_max) / temperature - teacher_log
        total += tl.where(at < classes, tl.exp(log_p) * (log_p - log_q), 0.0)
    tl.store(loss_ptr + row, tl.sum(total, axis=0).to(tl.bfloat16))


def kl_div(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Loss of each row of two bfloat16[rows, classes] with any row strides."""
    rows, classes = student.shape
    loss = torch.empty((rows,), dtype=student.dtype, device=student.device)
    kl_div_kernel[(rows,)](
        student,
        teacher,
        loss,
        student.stride(0),
        teacher.stride(0),
        classes,
        temperature,
        BLOCK=512,
    )
    return loss
