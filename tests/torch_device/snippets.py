"""Small programs for a GPU, as people write them, each of which must run on the simulated one."""

SNIPPETS = {
    "backward": """
x = torch.randn(4, device="cuda", requires_grad=True)
(x * 2).sum().backward()
assert x.grad.device.type == "cuda" and x.grad.tolist() == [2, 2, 2, 2]
""",
    "training": """
model = torch.nn.Sequential(
    torch.nn.Linear(5, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 1)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
x, losses = torch.randn(6, 5, device="cuda"), []
for _ in range(20):
    optimizer.zero_grad()
    loss = (model(x) - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0]
""",
    "softmax that converts": """
for call in (torch.softmax, torch.log_softmax):
    x = torch.randn(3, 7, device="cuda", dtype=torch.float16, requires_grad=True)
    y = call(x, dim=1, dtype=torch.float32)
    right = x.detach().cpu().float().requires_grad_()
    expected = call(right, dim=1)
    weight = torch.randn(3, 7)
    (y * weight.cuda()).sum().backward()
    (expected * weight).sum().backward()
    assert y.dtype == torch.float32 and x.grad.dtype == torch.float16
    torch.testing.assert_close(y.detach().cpu(), expected.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(x.grad.cpu().float(), right.grad, rtol=1e-3, atol=1e-3)
""",
    "an RMS norm is one operator": """
def outcome(x, weight, shape, device):
    given = x.detach().to(device).requires_grad_()
    scale = None if weight is None else weight.detach().to(device).requires_grad_()
    made = torch.nn.functional.rms_norm(given, shape, scale)
    (made.float() * torch.arange(made.numel(), device=device).view_as(made).cos()).sum().backward()
    return [made.detach(), given.grad, *([] if scale is None else [scale.grad])]
before = simulation.operators
for dtype, within in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.float64, 1e-10)):
    for shape in ((8,), (5, 8)):
        x = torch.randn(6, 5, 8, dtype=dtype)
        for weight in (None, torch.randn(shape, dtype=dtype)):
            made = [t.cpu() for t in outcome(x, weight, shape, "cuda")]
            expected = outcome(x, weight, shape, "cpu")
            assert torch.equal(made[0], expected[0])
            for a, b in zip(made, expected, strict=True):
                torch.testing.assert_close(a, b, rtol=within, atol=within)
after = simulation.operators
assert after["aten._fused_rms_norm.default"]["calls"] == 12
assert after["aten._fused_rms_norm_backward.default"]["calls"] == 12
assert after.get("aten.rsqrt.default") == before.get("aten.rsqrt.default")
x = torch.randn(2, 3, dtype=torch.float64)
def second(device):
    given = x.to(device).requires_grad_()
    made = torch.nn.functional.rms_norm(given, (3,)).pow(3).sum()
    (first,) = torch.autograd.grad(made, given, create_graph=True)
    return torch.autograd.grad(first.square().sum(), given)[0].cpu()
torch.testing.assert_close(second("cuda"), second("cpu"))
""",
    "attention counts as one operator": """
q = torch.randn(2, 4, 16, 8, device="cuda", requires_grad=True)
def calls(name):
    return simulation.operators.get(f"aten.{name}.default", {"calls": 0})["calls"]
attend = torch.nn.functional.scaled_dot_product_attention
before = calls("scaled_dot_product_attention"), calls("bmm")
made = attend(q, q, q, is_causal=True)
assert (calls("scaled_dot_product_attention"), calls("bmm")) == (before[0] + 1, before[1])
made.square().sum().backward()
assert calls("bmm") > before[1]
host = q.detach().cpu().requires_grad_()
attend(host, host, host, is_causal=True).square().sum().backward()
torch.testing.assert_close(q.grad.cpu(), host.grad, rtol=1e-4, atol=1e-5)
""",
    "recurrent layers": """
def outcome(layer, x, device):
    layer = layer.to(device)
    layer.zero_grad()
    given = x.detach().to(device).requires_grad_()
    made = layer(given)[0]
    made.square().sum().backward()
    gradients = [p.grad.cpu().clone() for p in layer.parameters()]
    return [made.detach().cpu(), given.grad.cpu(), *gradients]
for kind in (torch.nn.LSTM, torch.nn.GRU):
    for bias in (True, False):
        layer, x = kind(3, 5, bias=bias, num_layers=2), torch.randn(4, 2, 3)
        expected = outcome(layer, x, "cpu")
        for a, b in zip(outcome(layer, x, "cuda"), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
for kind in (torch.nn.LSTMCell, torch.nn.GRUCell):
    layer, x = kind(3, 5), torch.randn(2, 3)
    half = layer.cuda().half()(x.cuda().half())
    wide = layer.float()(x.cuda())
    half, wide = (made[0] if isinstance(made, tuple) else made for made in (half, wide))
    torch.testing.assert_close(half.float(), wide, rtol=1e-2, atol=1e-2)
""",
    "loss of a labelling without alignment": """
scores = torch.randn(9, 2, 6, requires_grad=True)
labels, frames, lengths = torch.randint(1, 6, (2, 3)), torch.tensor([9, 8]), torch.tensor([3, 2])
def loss(given, *sizes):
    return torch.nn.functional.ctc_loss(given.log_softmax(2), *sizes)
expected = loss(scores, labels, frames, lengths)
(right,) = torch.autograd.grad(expected, scores)
held = scores.detach().cuda().requires_grad_()
for sizes in (
    (labels.cuda(), frames.cuda(), lengths.cuda()),
    (labels.cuda(), (9, 8), (3, 2)),
    (labels.int(), frames.int(), lengths.int()),
):
    made = loss(held, *sizes)
    (gradient,) = torch.autograd.grad(made, held)
    torch.testing.assert_close(made.cpu(), expected.detach())
    torch.testing.assert_close(gradient.cpu(), right, rtol=1e-4, atol=1e-6)
""",
    "autograd.Function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        assert x.is_cuda
        return gradient * 2
x = torch.ones(3, device="cuda", requires_grad=True)
Double.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2, 2]
""",
    "mixed precision": """
model, scaler = torch.nn.Linear(5, 8).cuda(), torch.amp.GradScaler("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.autocast("cuda", dtype=torch.float16):
    y = model(torch.randn(6, 5, device="cuda"))
scaler.scale(y.float().pow(2).mean()).backward()
scaler.step(optimizer)
scaler.update()
assert y.dtype == torch.float16
""",
    "statistics of small floats": """
x = torch.randn(8, 64, device="cuda", dtype=torch.bfloat16)
out, mean, rstd = torch.native_layer_norm(x, (64,), None, None, 1e-5)
assert (out.dtype, mean.dtype, rstd.dtype) == (torch.bfloat16, torch.float32, torch.float32)
torch.testing.assert_close(mean[:, 0], x.float().mean(1))
""",
    "long sums of gradients": """
x = torch.randn(4, 32000)
def gradient(x):
    x.requires_grad_(True)
    target = torch.arange(len(x), device=x.device)
    torch.nn.functional.cross_entropy(x, target, label_smoothing=0.2).backward()
    return x.grad.cpu()
exact = gradient(x.double())
torch.testing.assert_close(gradient(x.cuda()), exact.float(), rtol=2e-6, atol=1e-9)
small = gradient(x.bfloat16().cuda())
assert small.dtype == torch.bfloat16
torch.testing.assert_close(small.double(), gradient(x.bfloat16().double()), rtol=0.2, atol=1e-5)
""",
    "gradients of norms": """
torch.manual_seed(0)
x, dy = torch.randn(16, 32, 4096), torch.randn(16, 32, 4096)
def gradients(x, norm):
    norm(x).backward(dy.to(x))
    return norm.bias.grad.cpu(), norm.weight.grad.cpu()
for exact, grad in zip(
    gradients(x.double(), torch.nn.GroupNorm(1, 32).double()),
    gradients(x.cuda(), torch.nn.GroupNorm(1, 32).cuda()),
):
    assert grad.dtype == torch.float32
    torch.testing.assert_close(grad, exact.float(), rtol=1e-6, atol=2e-5)
""",
    "another device": """
torch.cuda.set_device(0)
torch.cuda.set_device("cuda")
try:
    torch.cuda.set_device(1)
except RuntimeError as error:
    assert "invalid device ordinal" in str(error)
else:
    raise AssertionError("there is one device")
""",
    "calls that name another device": """
for call in (torch.cuda.get_device_properties, torch.cuda.get_device_name,
             torch.cuda.get_device_capability, torch.cuda.Stream):
    call(), call(0), call("cuda"), call(torch.device("cuda", 0))
    try:
        call(5)
    except RuntimeError as error:
        assert "invalid device ordinal" in str(error)
    else:
        raise AssertionError("there is one device")
""",
    "a storage that is made smaller": """
x = torch.arange(6.0, device="cuda")
x.untyped_storage().resize_(0)
assert x.untyped_storage().size() == 0 and x.shape == (6,) and x.view(2, 3).shape == (2, 3)
for read in (lambda: x + 1, x.clone, x.cpu, lambda: x.fill_(1), lambda: x.copy_(torch.ones(6))):
    try:
        read()
    except RuntimeError as error:
        assert "needs 24 bytes of its storage, which has 0" in str(error)
    else:
        raise AssertionError("there is nothing to read")
x.untyped_storage().resize_(24)
assert x.copy_(torch.arange(6.0)).sum() == 15
x.untyped_storage().resize_(12)
assert x[:3].tolist() == [0, 1, 2]
torch.ones(4).untyped_storage().resize_(0)
""",
    "a grid that no GPU has": """
x = torch.ones(4, device="cuda")
for grid, text in (((-1,), "grid is -1"), ((1 << 31,), "fewer than 2147483648 workgroups")):
    try:
        doubling[grid](x, x, 4, BLOCK=4)
    except Exception as error:
        assert text in str(error), error
    else:
        raise AssertionError(grid)
""",
    "attention": """
q = torch.randn(1, 4, 8, 16, device="cuda", requires_grad=True)
out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
host = torch.nn.functional.scaled_dot_product_attention(*[q.cpu()] * 3, is_causal=True)
torch.testing.assert_close(out.cpu(), host)
out.sum().backward()
""",
    "convolutions": """
for kind, groups in ((torch.nn.Conv1d, 1), (torch.nn.Conv2d, 4), (torch.nn.Conv3d, 1)):
    layer = kind(4, 4, 3, groups=groups).cuda()
    x = torch.randn(2, 4, *[7] * (layer.weight.dim() - 2), device="cuda")
    layer(x).sum().backward()
    torch.testing.assert_close(layer(x).cpu(), layer.cpu()(x.cpu()))
""",
    "shapes in place": """
x = torch.ones(1, 3, device="cuda")
assert x.squeeze_(0) is x and x.shape == (3,)
assert x.unsqueeze_(0).shape == (1, 3) and x.t_().shape == (3, 1)
x = torch.arange(6.0, device="cuda").view(2, 3)
assert x.resize_(6).shape == (6,) and x.resize_(8).shape == (8,) and x[5] == 5
x.set_(torch.ones(4, device="cuda"))
assert x.tolist() == [1, 1, 1, 1]
x = torch.ones(2, 3, device="cuda")
x.data = torch.zeros(4, device="cuda")
assert x.tolist() == [0, 0, 0, 0]
x = torch.empty(0, device="cuda")
x.set_(x.untyped_storage(), 0, (2, 3))
assert x.data_ptr() and x.fill_(7).tolist() == [[7] * 3] * 2
""",
    "a copy past the operator": """
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)
copy = torch.ops.aten.copy_.default.redispatch
x, host = torch.zeros(2, 3, device="cuda"), torch.zeros(3, 2)
copy(keys, x.t(), torch.arange(3, device="cuda").view(3, 1), False)
assert x.tolist() == [[0, 1, 2]] * 2
copy(keys, host, x.t(), False)
assert host.tolist() == [[0, 0], [1, 1], [2, 2]]
copy(keys, x, host.t() + 1, False)
assert x.tolist() == [[1, 2, 3]] * 2
""",
    "results given": """
a, m = torch.ones(4, device="cuda"), torch.ones(4, 3, device="cuda")
out = torch.empty(0, device="cuda")
assert torch.add(a, a, out=out) is out and out.tolist() == [2, 2, 2, 2]
assert (a @ m).shape == (3,) and (m.T @ a).shape == (3,) and (a @ a).shape == ()
assert torch.add(m, 1, out=torch.empty(3, 4, device="cuda").T).stride() == (1, 4)
""",
    "indices": """
x, i = torch.arange(30.0, device="cuda").view(6, 5), torch.tensor([0, 2, 3], device="cuda")
host = x.cpu()
for index in (i, (slice(None), i), (i, 1), (..., i), (None, i), [0, 2], x > 7, x[:, 0] > 3):
    parts = index if isinstance(index, tuple) else (index,)
    same = tuple(p.cpu() if isinstance(p, torch.Tensor) else p for p in parts)
    assert torch.equal(x[index].cpu(), host[same if isinstance(index, tuple) else same[0]])
y = x.clone()
y[i] = 0
y[y > 20] = 1
y[0, i] = 5.0
y[:2] = torch.ones(2, 5)
assert y[:2].sum() == 10 and y[2].sum() == 0
""",
    "products with another dtype": """
a, b, c = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((3, 4), (4, 5), (3, 5)))
expected = a.float() @ b.float()
out = torch.empty(3, 5, device="cuda")
for result in (
    torch.mm(a, b, out_dtype=torch.float32),
    torch.mm(a, b, out_dtype=torch.float32, out=out),
    torch.bmm(a[None], b[None], out_dtype=torch.float32)[0],
    torch.addmm(c.float(), a, b, out_dtype=torch.float32) - c.float(),
    torch.baddbmm(c[None].float(), a[None], b[None], out_dtype=torch.float32, beta=0)[0],
):
    assert result.is_cuda and result.dtype == torch.float32
    torch.testing.assert_close(result, expected)
torch.testing.assert_close(out, expected)
""",
    "code that the compiler of PyTorch has written": """
make = torch._C._dynamo.guards._empty_strided_cuda
x = make((3, 4), (1, 3), torch.float16)
assert x.is_cuda and x.stride() == (1, 3) and x.dtype == torch.float16
""",
    "views alias": """
x = torch.zeros(2, 2, dtype=torch.complex64, device="cuda")
torch.view_as_real(x)[..., 1] = 3
assert x.imag.sum().item() == 12 and x.conj().resolve_conj().imag.sum().item() == -12
x = torch.zeros(8, device="cuda")
x.view(torch.int32)[0] = 1065353216
assert x[0] == 1
""",
    "conversions": """
x = torch.randn(4, device="cuda")
assert x.to(device="cuda", dtype=torch.bfloat16).dtype == torch.bfloat16
assert x.to(torch.float8_e4m3fnuz).float().device.type == "cuda"
assert x.type() == "torch.cuda.FloatTensor" and isinstance(x, torch.cuda.FloatTensor)
assert x.cpu().numpy().shape == (4,) and not x.cpu().is_cuda
""",
    "generators": """
def draw(seed):
    return torch.randn(3, device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
torch.manual_seed(5)
first = torch.rand(3, device="cuda")
state = torch.cuda.get_rng_state()
second = torch.rand(3, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(second, torch.rand(3, device="cuda")) and not torch.equal(first, second)
torch.cuda.manual_seed(5)
assert torch.equal(first, torch.rand(3, device="cuda"))
before = torch.get_rng_state()
torch.rand(3, device="cuda")
assert torch.equal(before, torch.get_rng_state())
""",
    "pinned memory": """
pinned = torch.ones(3).pin_memory()
assert pinned.is_pinned() and pinned[1:].is_pinned() and not torch.ones(3).is_pinned()
assert torch.empty(3, pin_memory=True).is_pinned() and pinned.cuda(non_blocking=True).sum() == 3
""",
    "exchange": """
x = torch.ones(3, device="cuda")
torch.from_dlpack(x).add_(1)
assert x.tolist() == [2, 2, 2]
import copy, io
buffer = io.BytesIO()
torch.save({"x": x}, buffer)
buffer.seek(0)
assert torch.load(buffer)["x"].device == x.device
layer = copy.deepcopy(torch.nn.Linear(2, 2).cuda())
assert layer.weight.is_cuda
""",
    "assert_close says what differs": """
a = torch.zeros(4, 2, device="cuda")
b = a.clone()
torch.testing.assert_close(a, b)
b[0, 0] = 9
try:
    torch.testing.assert_close(a, b)
except AssertionError as error:
    assert "Mismatched elements: 1 / 8" in str(error)
else:
    raise SystemExit("nothing differed")
""",
    "streams": """
side = torch.cuda.Stream()
with torch.cuda.stream(side), torch.cuda.device(0):
    x = torch.ones(3, device="cuda")
    x.record_stream(side)
torch.Stream(device="cuda").synchronize()
torch.Event(device="cuda").record()
assert torch.accelerator.current_accelerator().type == "cuda"
""",
    "memory": """
before = torch.cuda.memory_allocated()
x = torch.empty(1000, dtype=torch.uint8, device="cuda")
assert torch.cuda.memory_allocated() == before + 1000
del x
assert torch.cuda.memory_allocated() == before
assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before
assert torch.cuda.max_memory_allocated() >= before + 1000
""",
    "out of memory": """
try:
    torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    assert str(1 << 45) in str(error) and "live" in str(error)
else:
    raise SystemExit("it was allocated")
""",
    "devices do not mix": """
for wrong in (lambda x: x + torch.ones(3), lambda x: torch.mm(x[None], torch.ones(3, 1))):
    try:
        wrong(torch.ones(3, device="cuda"))
    except RuntimeError as error:
        assert "same device" in str(error)
    else:
        raise SystemExit("it was computed")
assert (torch.ones(3, device="cuda") + torch.tensor(1.0)).sum() == 6
try:
    torch.ones(2, device="cuda:1")
except RuntimeError as error:
    assert "cuda:1" in str(error)
""",
    "what is not there has a name": """
for call, name in (
    (lambda: torch.ops.aten._fused_dropout(torch.ones(2, device="cuda"), 0.5), "_fused_dropout"),
    (lambda: torch.eye(3, device="cuda").to_sparse(), "sparse"),
):
    try:
        call()
    except NotImplementedError as error:
        assert name in str(error)
    else:
        raise SystemExit("it was computed")
""",
    "a kernel in a custom operator": """
@torch.library.custom_op("snippets::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    doubling[(1,)](x, out, x.numel(), BLOCK=64)
    return out
assert double(torch.ones(4, device="cuda")).tolist() == [2, 2, 2, 2]
""",
    "a kernel gets a tensor of the host": """
try:
    doubling[(1,)](torch.ones(4), torch.empty(4), 4, BLOCK=64)
except ValueError as error:
    assert "cpu tensor?" in str(error)
else:
    raise SystemExit("it was launched")
""",
    "a graph of launches": """
x, y = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    doubling[(1,)](x, y, 4, BLOCK=64)
assert y.sum() == 0
x.fill_(3)
graph.replay()
assert y.tolist() == [6, 6, 6, 6]
try:
    with torch.cuda.graph(graph):
        x + 1
except NotImplementedError as error:
    assert "aten.add.Tensor cannot be captured" in str(error)
else:
    raise SystemExit("it was captured")
assert (x + 1).tolist() == [4, 4, 4, 4]
""",
    "time passes": """
start, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
x = torch.ones(512, 512, device="cuda")
flops = simulation.operators["aten.mm.default"]["flops"]
start.record()
x + x
middle.record()
x @ x
end.record()
assert 0.002 <= start.elapsed_time(middle) < middle.elapsed_time(end) < 1
assert simulation.operators["aten.mm.default"]["flops"] == flops + 2 * 512**3
""",
    "a wrong access is found": """
x = torch.ones(4, device="cuda")
try:
    doubling[(1,)](x, torch.empty(2, device="cuda"), 4, BLOCK=64)
except RuntimeError as error:
    assert "out of bounds" in str(error), error
else:
    raise SystemExit("it was not found")
assert "out of bounds" in simulation.findings[0]["message"]
""",  # the last one: the device is in error afterwards
}
