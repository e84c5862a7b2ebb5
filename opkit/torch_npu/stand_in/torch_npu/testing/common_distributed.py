"""Decorators of tests that want several devices."""

from .common_utils import skipIfUnsupportMultiNPU

__all__ = ["skipIfUnsupportMultiNPU"]
