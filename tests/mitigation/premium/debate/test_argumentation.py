"""Argument graphs and their grounded extension, compared with the definitions by brute force."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.mitigation.premium.debate.argumentation import (
    ArgumentGraph,
    defeated,
    grounded_extension,
)


def graph_of(count: int, *attacks: tuple[int, int]) -> ArgumentGraph:
    return ArgumentGraph(tuple(map(str, range(count))), frozenset(attacks))


@st.composite
def small_graphs(draw: st.DrawFn, most: int = 7) -> ArgumentGraph:
    count = draw(st.integers(0, most))
    if not count:
        return graph_of(0)
    index = st.integers(0, count - 1)
    return graph_of(count, *draw(st.lists(st.tuples(index, index), max_size=16)))


def defends(graph: ArgumentGraph, members: frozenset[int], argument: int) -> bool:
    attackers = {attacker for attacker, target in graph.attacks if target == argument}
    return all(any((member, attacker) in graph.attacks for member in members) for attacker in attackers)


def conflict_free(graph: ArgumentGraph, members: frozenset[int]) -> bool:
    return not any(a in members and b in members for a, b in graph.attacks)


def complete_extensions(graph: ArgumentGraph) -> list[frozenset[int]]:
    everything = range(len(graph.arguments))
    subsets = chain.from_iterable(combinations(everything, size) for size in range(len(everything) + 1))
    return [
        members
        for members in map(frozenset, subsets)
        if conflict_free(graph, members)
        and members == {index for index in everything if defends(graph, members, index)}
    ]


@given(small_graphs())
def test_is_the_least_complete_extension(graph: ArgumentGraph) -> None:
    """The grounded extension is complete, and a part of every complete extension."""
    extensions = complete_extensions(graph)
    grounded = grounded_extension(graph)
    assert grounded in extensions
    assert all(grounded <= other for other in extensions)


@given(small_graphs(most=20))
def test_is_conflict_free_and_admissible(graph: ArgumentGraph) -> None:
    """No accepted argument attacks another, and each is defended against all of its attackers."""
    grounded = grounded_extension(graph)
    assert conflict_free(graph, grounded)
    assert all(defends(graph, grounded, index) for index in grounded)


@given(small_graphs(most=20))
def test_accepted_and_defeated_do_not_overlap(graph: ArgumentGraph) -> None:
    """Whatever is attacked by an accepted argument is not accepted."""
    grounded = grounded_extension(graph)
    assert not grounded & defeated(graph, grounded)


@given(small_graphs(most=20))
def test_what_nobody_attacks_is_in(graph: ArgumentGraph) -> None:
    """Every unattacked argument is accepted."""
    attacked = {target for _, target in graph.attacks}
    assert set(range(len(graph.arguments))) - attacked <= grounded_extension(graph)


@pytest.mark.parametrize("length", [1, 3, 5, 7])
def test_odd_cycles_stay_out(length: int) -> None:
    """Of arguments that attack each other in an odd circle none is accepted, a self-attacker included."""
    assert (
        grounded_extension(graph_of(length, *[(i, (i + 1) % length) for i in range(length)])) == frozenset()
    )


def test_mutual_attack_decides_nothing() -> None:
    """Two arguments that attack each other are both undecided: neither accepted nor defeated."""
    graph = graph_of(2, (0, 1), (1, 0))
    assert grounded_extension(graph) == frozenset()
    assert defeated(graph, frozenset()) == frozenset()


def test_defence_reinstates() -> None:
    """An argument whose attacker is defeated by a third one is accepted again."""
    assert grounded_extension(graph_of(3, (1, 0), (2, 1))) == {0, 2}


def test_a_cycle_is_broken_from_outside() -> None:
    """An unattacked argument against one of two mutual attackers decides for the other."""
    assert grounded_extension(graph_of(3, (0, 1), (1, 0), (2, 1))) == {0, 2}


def test_long_chains_alternate() -> None:
    """In a chain of attacks every second argument from the unattacked end is accepted."""
    graph = graph_of(10_001, *[(i + 1, i) for i in range(10_000)])
    assert grounded_extension(graph) == frozenset(range(0, 10_001, 2))


def test_saying_something_leaves_the_old_graph_alone() -> None:
    """A new argument takes the next index and attacks what it is said against, in a new graph."""
    before = graph_of(2)
    after = before.said("no", against=1)
    assert before == graph_of(2)
    assert (after.arguments, after.attacks) == (("0", "1", "no"), {(2, 1)})


@pytest.mark.parametrize("attack", [(0, 1), (1, 0), (-1, 0)])
def test_strangers_cannot_attack(attack: tuple[int, int]) -> None:
    """An attack from or on an argument that is not in the graph is refused."""
    with pytest.raises(ValueError, match="an attack is a pair"):
        graph_of(1, attack)
