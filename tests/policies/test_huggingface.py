"""Ordinary Hugging Face directories: end tokens, sampling, chat templates, contexts."""

import pytest

from kernel_gym.policies import Options, PolicyError, Stop
from kernel_gym.policies.answers import CUT_OFF
from kernel_gym.policies.huggingface import HuggingFace, SamplingParams, hugging_face
from tests.policies.chat_server import chat

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

TEMPLATE = "{% for m in messages %}<|start|>{{ m['content'] }}<|end|>{% endfor %}<|start|>"
SPECIAL = ["<|text|>", "<|start|>", "<|end|>"]
CONTEXT = 64


def tokenizer(template=TEMPLATE, pad="<|text|>"):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(["def softmax(x): return x"], trainer)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|text|>", pad_token=pad
    )
    made.chat_template = template
    return made


def checkpoint(says, words, **generation):
    """A model that always writes one token."""
    config = transformers.Qwen2Config(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        eos_token_id=words.eos_token_id,
    )
    model = transformers.Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head = torch.nn.Linear(16, len(words))
        model.lm_head.weight.zero_()
        model.lm_head.bias.zero_()
        model.lm_head.bias[words.convert_tokens_to_ids(says)] = 50
    model.generation_config = transformers.GenerationConfig(**generation)
    return model


def policy(says="a", max_tokens=10, **words):
    words = tokenizer(**words)
    ends = [words.convert_tokens_to_ids(token) for token in ("<|text|>", "<|end|>")]
    model = checkpoint(says, words, eos_token_id=ends)
    return HuggingFace.of(model, words, SamplingParams(max_tokens=max_tokens, temperature=0))


def test_a_reply_ends_with_any_end_token_of_the_generation_configuration():
    player = policy("<|end|>")
    assert player.generate([player.prompt_ids(chat("hi"))]) == [[2]]
    (reply,) = player.reply([chat("hi")])
    assert (reply.completion_tokens, reply.problem) == (1, "")


def test_a_reply_that_reaches_the_limit_is_marked():
    (reply,) = policy(max_tokens=5).reply([chat("hi")])
    assert (reply.text, reply.problem) == ("aaaaa", CUT_OFF)


def test_a_prompt_beyond_the_context_ends_the_episode_and_no_other_one():
    stop, reply = policy(max_tokens=4).reply([chat("x " * CONTEXT), chat("hi")])
    assert isinstance(stop, Stop)
    assert f"and the context {CONTEXT}" in stop.reason
    assert reply.text == "aaaa"


def test_a_reply_ends_where_the_context_does():
    player = policy(max_tokens=1000)
    long, short = chat("x" * (CONTEXT - 10)), chat("hi")
    first, second = player.reply([long, short])
    for reply in (first, second):
        assert reply.prompt_tokens + reply.completion_tokens == CONTEXT
        assert reply.problem == CUT_OFF


def test_a_prompt_that_leaves_little_of_the_context_is_named_once(caplog):
    player = policy(max_tokens=1000)
    player.reply([chat("x" * (CONTEXT - 10)), chat("x" * (CONTEXT - 11))])
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"and the context {CONTEXT}, so a reply ends after 7 tokens" in line
    assert "triton2triton/softmax" in line


def test_a_short_reply_that_is_asked_for_is_not_named(caplog):
    policy(max_tokens=4).reply([chat("hi")])
    assert caplog.records == []


def test_a_model_without_a_chat_template_gets_plain_text():
    player = policy(template=None)
    ids = player.prompt_ids(chat("write softmax"))
    assert player.tokenizer.decode(ids) == "write softmax\n\n"
    assert player.reply([chat("hi")])[0].text == "a" * 10


def test_a_tokenizer_without_a_pad_token_is_usable():
    player = policy(pad=None)
    assert [reply.text for reply in player.reply([chat("hi"), chat("hello you")])] == ["a" * 10] * 2


def test_a_template_that_refuses_the_chat_is_one_line():
    player = policy(template="{{ raise_exception('no system role') }}")
    with pytest.raises(PolicyError, match="the chat template fails: no system role"):
        player.reply([chat("hi")])


def test_sampling_is_that_of_the_checkpoint_unless_it_is_asked_for(tmp_path):
    words = tokenizer()
    sampling = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20}
    checkpoint("a", words, **sampling, eos_token_id=2).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    player = hugging_face(tmp_path, Options(temperature=0.2, max_tokens=3))
    used = player._generation(3)
    assert (used.temperature, used.top_p, used.top_k) == (0.2, 0.8, 20)
    assert player.sampling.extra == {"top_k": 20}
    assert player.ends == {0, 2}
    SamplingParams(temperature=0.5).write(tmp_path)
    assert SamplingParams.of(tmp_path) == SamplingParams(temperature=0.5)


@pytest.mark.parametrize(
    "text", ['{"temprature": 1}', '{"top_p": 2}', '{"max_tokens": "9"}', "[]", "{", '{"top_k": -1}']
)
def test_a_malformed_file_of_sampling_is_one_line(tmp_path, text):
    (tmp_path / "gym.json").write_text(text)
    with pytest.raises(PolicyError, match="sampling of"):
        SamplingParams.of(tmp_path)


def test_a_checkpoint_that_states_no_sampling_has_the_defaults(tmp_path):
    checkpoint("a", tokenizer()).save_pretrained(tmp_path)
    assert SamplingParams.of(tmp_path) == SamplingParams() == SamplingParams.of(tmp_path / "none")


def drawn_from(bias, params):
    """The log-probability of each token of a model whose logits are the same at each step."""
    scores = bias / (params.temperature or 1)
    if params.temperature:
        scores[scores < scores.topk(params.top_k).values[-1]] = -torch.inf
        ordered, places = torch.sort(torch.softmax(scores, 0), descending=True)
        scores[places[ordered.cumsum(0) - ordered >= params.top_p]] = -torch.inf
    return torch.log_softmax(scores, 0)


@pytest.mark.parametrize("temperature", [0.7, 0])
def test_each_token_has_the_probability_with_which_it_was_drawn(temperature):
    words = tokenizer()
    model = checkpoint("a", words, eos_token_id=words.eos_token_id)
    bias = torch.linspace(-2, 2, len(words))
    with torch.no_grad():
        model.lm_head.bias.copy_(bias)
    params = SamplingParams(max_tokens=6, temperature=temperature, top_k=50, top_p=0.9)
    player = HuggingFace.of(model, words, params)
    for reply in player.reply([chat("hi"), chat("hello you")]):
        own = reply.tokens
        assert (len(own.prompt_ids), len(own.ids)) == (reply.prompt_tokens, reply.completion_tokens)
        expected = drawn_from(bias.clone(), params)[list(own.ids)]
        torch.testing.assert_close(torch.tensor(own.logprobs), expected, atol=1e-5, rtol=0)
        assert torch.isfinite(expected).all()
