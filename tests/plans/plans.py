"""Plans for the tests of this folder, and the strategy that draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from kernel_gym.plans.types import (
    ELEMENT_BYTES,
    BufferReference,
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanArgument,
    PlanBuffer,
    PlanCode,
    PlanKernel,
    UploadStep,
    WrongOutput,
)

VIEW = BufferView(1, 16, (2, 4), (4, 1), "float32")
PLAN = LaunchPlan(
    arch="gfx942",
    codes=(PlanCode(CodeForm.ASSEMBLER, b"the text"),),
    kernels=(PlanKernel(0, "add", 512),),
    buffers=(
        PlanBuffer(BufferRole.INPUT, 64),
        PlanBuffer(BufferRole.SCRATCH, 64),
        PlanBuffer(BufferRole.SCRATCH, 32, begin=1, end=3),
        PlanBuffer(BufferRole.VARIABLE, 8, code=0, symbol="table"),
    ),
    steps=(
        FillStep(VIEW, bytes(4)),
        UploadStep(2, 8, bytes(16), (BufferReference(8, 0, 64),)),
        LaunchStep(
            0,
            (4, 1, 1),
            (64, 2, 1),
            128,
            (PlanArgument(bytes(8), (BufferReference(0, 0, 4),)), PlanArgument(b"\5\0\0\0")),
        ),
        CopyStep(BufferView(0, 0, (2, 4), (0, 1), "float32"), VIEW),
    ),
    outputs=(VIEW, WrongOutput("a list")),
)
"""One of everything."""

_TEXTS = st.text(max_size=64).map(lambda text: PlanCode(CodeForm.ASSEMBLER, text.encode()))
BYTES_OF_SMALL = 256
ROOM = 4096


def views(buffers: int) -> st.SearchStrategy[BufferView]:
    """Contiguous tensors of one axis in buffers of `ROOM` bytes."""
    return st.builds(
        lambda buffer, words, count, dtype: BufferView(buffer, 16 * words, (count,), (1,), dtype),
        st.integers(0, buffers - 1),
        st.integers(0, 100),
        st.integers(0, 100),
        st.sampled_from(sorted(ELEMENT_BYTES)),
    )


def references(size: int, buffers: int) -> st.SearchStrategy[tuple[BufferReference, ...]]:
    """Addresses in `size` bytes."""
    words = st.lists(st.integers(0, max(0, size // 8 - 1)), unique=True, max_size=4)
    if size < 8:
        return st.just(())
    return words.flatmap(
        lambda places: st.tuples(
            *(
                st.builds(BufferReference, st.just(8 * at), st.integers(0, buffers - 1), _offsets)
                for at in sorted(places)
            )
        )
    )


_offsets = st.integers(0, ROOM)


def _arguments(buffers: int) -> st.SearchStrategy[PlanArgument]:
    return st.integers(0, 48).flatmap(
        lambda size: st.builds(PlanArgument, st.just(bytes(size)), references(size, buffers))
    )


def _steps(buffers: int) -> st.SearchStrategy:
    three = st.tuples(*(st.integers(1, 8),) * 3)
    launches = st.builds(
        LaunchStep,
        st.integers(0, 1),
        three,
        three,
        st.integers(0, 65536),
        st.lists(_arguments(buffers), max_size=5).map(tuple),
        st.booleans(),
    )
    fills = views(buffers).flatmap(
        lambda view: st.binary(
            min_size=ELEMENT_BYTES[view.dtype], max_size=ELEMENT_BYTES[view.dtype]
        ).map(lambda pattern: FillStep(view, pattern))
    )
    copies = st.tuples(views(buffers), views(buffers)).map(
        lambda pair: CopyStep(BufferView(pair[0].buffer, pair[0].offset, *_form(pair[1])), pair[1])
    )
    uploads = st.integers(0, BYTES_OF_SMALL).flatmap(
        lambda size: st.builds(
            UploadStep,
            st.integers(0, buffers - 1),
            st.integers(0, ROOM - BYTES_OF_SMALL),
            st.just(bytes(size)),
            references(size, buffers),
        )
    )
    return st.one_of(launches, fills, copies, uploads)


def _form(view: BufferView) -> tuple:
    return view.shape, view.strides, view.dtype


@st.composite
def plans(draw) -> LaunchPlan:
    """Plans that are right."""
    inputs = draw(st.integers(0, 2))
    buffers = tuple(PlanBuffer(BufferRole.INPUT, ROOM, number) for number in range(inputs))
    buffers += (PlanBuffer(BufferRole.SCRATCH, ROOM),) * draw(st.integers(1, 3))
    names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
    return LaunchPlan(
        arch=draw(st.sampled_from(("gfx942", "sm_90"))),
        codes=tuple(draw(st.lists(_TEXTS, min_size=1, max_size=4))),
        kernels=tuple(
            PlanKernel(0, draw(names), draw(st.none() | st.integers(0, 1024))) for _ in range(2)
        ),
        buffers=buffers,
        steps=tuple(draw(st.lists(_steps(len(buffers)), max_size=6))),
        outputs=tuple(
            draw(st.lists(views(len(buffers)) | st.builds(WrongOutput, names), max_size=3))
        ),
    )
