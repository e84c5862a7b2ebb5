"""Switching the model on around a call."""

from __future__ import annotations

import pytest

from opkit import runtime
from opkit.errors import UsageError
from opkit.profiling import Profile, profile, profile_all


def test_a_call_that_launches_nothing_cannot_be_profiled() -> None:
    with pytest.raises(UsageError, match="launched no kernel"):
        profile(len, [])


def test_all_launches_of_such_a_call_are_none() -> None:
    assert profile_all(len, []) == []


def test_the_device_is_left_as_it_was() -> None:
    before = runtime.configuration()
    with Profile():
        assert runtime.configuration().profile
    assert runtime.configuration() == before


def test_an_error_inside_leaves_the_device_as_it_was_too() -> None:
    with pytest.raises(ZeroDivisionError), Profile():
        raise ZeroDivisionError
    assert not runtime.configuration().profile


def test_a_negative_event_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="event_limit is -1"):
        Profile(event_limit=-1)
