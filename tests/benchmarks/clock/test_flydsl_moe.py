"""The routing of tokens to experts, which decides how much work a launch has."""

import torch

from benchmarks.clock.flydsl_moe import route

TOKENS, EXPERTS, TOPK, BLOCK = 20, 8, 3, 16


def test_each_pair_of_token_and_slot_is_once_in_a_block_of_its_expert():
    routing = route(TOKENS, EXPERTS, TOPK, BLOCK)
    rows = int(routing.valid[0])
    assert rows % BLOCK == 0
    ids = routing.ids[:rows]
    real = ids[(ids & 0xFFFFFF) < TOKENS]
    pairs = {(int(each) & 0xFFFFFF, int(each) >> 24) for each in real}
    assert len(real) == len(pairs) == TOKENS * TOPK
    assert {slot for _, slot in pairs} == set(range(TOPK))
    by_token = {}
    for place, each in enumerate(ids):
        token = int(each) & 0xFFFFFF
        if token < TOKENS:
            by_token.setdefault(token, set()).add(int(routing.experts[place // BLOCK]))
    assert all(len(experts) == TOPK for experts in by_token.values())


def test_padding_names_no_token_and_weighs_nothing():
    routing = route(TOKENS, EXPERTS, TOPK, BLOCK)
    padding = (routing.ids & 0xFFFFFF) == TOKENS
    assert torch.all(routing.weights[padding] == 0)
    assert len(routing.ids) == len(routing.experts) * BLOCK == len(routing.weights)


def test_a_single_token_has_one_block_for_each_of_its_experts():
    routing = route(1, EXPERTS, TOPK, BLOCK)
    assert routing.valid.tolist() == [TOPK * BLOCK, 1]
    assert len(set(routing.experts[:TOPK].tolist())) == TOPK


def test_the_draw_has_a_seed():
    assert torch.equal(route(5, 8, 2, 4, seed=1).ids, route(5, 8, 2, 4, seed=1).ids)
    assert not torch.equal(route(5, 8, 2, 4, seed=1).experts, route(5, 8, 2, 4, seed=2).experts)
