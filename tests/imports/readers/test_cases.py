"""Generators of inputs are written from recorded ones."""

import pytest

from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.readers.cases import Constructed, constructed, generator_of
from kernel_gym.imports.recorded.calls import RecordedCall, TensorForm, ValueClass


def case(*shapes, kind="float", **values):
    forms = [
        TensorForm(
            shape=shape,
            strides=tuple(range(len(shape))),
            dtype="float32" if kind == "float" else "int64",
            values=ValueClass(kind=kind, **values),
        )
        for shape in shapes
    ]
    args = [{"tensor": number} for number in range(len(forms))]
    return RecordedCall(function="forward", args=args, kwargs={}, tensors=forms)


def made(*args, **kwargs):
    return Constructed(args=list(args), kwargs=kwargs)


def test_the_most_frequent_form_is_taken_with_the_largest_sizes():
    calls = [case((8, 16), low=-1.0), case((32, 16), low=-1.0), case((4, 4, 4), low=-1.0)]
    generator = generator_of(calls, made(hidden_size=16, out_dim=24, heads=16), [])
    names = {}
    exec(generator.text, names)
    (drawn,) = names["make_inputs"]()
    assert drawn.shape == (32, 16)
    assert float(drawn.min()) < 0
    assert names["make_init"]() == {"hidden_size": 16, "out_dim": 24, "heads": 16}
    assert generator.text.count("'hidden_size': d1") == 1
    assert generator.text.count("'out_dim': of_out_dim") == 1
    assert generator.text.count("'heads': 16") == 1
    assert [point["d0"] for point in generator.points] == [8, 32]


def test_positional_arguments_have_the_names_of_the_parameters():
    generator = generator_of(
        [case((8, 16), low=0.0)], made(16, 3, 0.5), ["in_features", "kernel_size"]
    )
    names = {}
    exec(generator.text, names)
    assert names["make_init"]() == (16, 3, 0.5)
    assert "(d1, 3, 0.5, )" in generator.text
    assert float(names["make_inputs"]()[0].min()) >= 0


def test_indices_stay_below_their_largest_value():
    names = {}
    exec(generator_of([case((64,), kind="integers", low=2, high=5)], made(), []).text, names)
    (drawn,) = names["make_inputs"]()
    assert set(drawn.tolist()) <= {2, 3, 4, 5}


@pytest.mark.parametrize(
    "answer",
    [{}, {"init": {"args": [[1]], "kwargs": {}}}, {"init": {"args": [], "kwargs": {"a b": 1}}}],
)
def test_a_hostile_constructor_is_unsupported(answer):
    with pytest.raises(UnsupportedTask, match="constructor"):
        constructed(answer)
