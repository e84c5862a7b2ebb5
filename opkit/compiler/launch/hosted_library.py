"""Kernels of the device's library in generated operators: the class that calls a function."""

from __future__ import annotations

from ..codegen import KernelClass, Text, class_of, struct_of
from ..passes import Group
from .library import HOMES
from .library_calls import LibraryCall

__all__ = ["library_class"]


def library_class(group: Group, call: LibraryCall) -> KernelClass:
    """Return the class that calls a function of the library for a group."""
    addresses, members = tuple(call.tensors), call.members
    passed = [name if name in call.tensors else "nullptr" for name in call.parameters]
    plan, location = HOMES[call.function][1], group.nodes[0].location
    struct, name = struct_of(group.name), class_of(group.name)
    declaration = Text()
    declaration(f"struct {struct} {{")
    declaration.all(f"{kind} {member};" for member, kind in members)
    declaration("};")
    out = Text()
    out(f"class {name} {{")
    out("public:")
    parameters = ", ".join(f"GM_ADDR {each}Address" for each in addresses)
    out(f"__aicore__ inline void Init({parameters}, const {struct}& given)")
    out("{")
    out.all(f"{each} = {each}Address;" for each in addresses)
    out.all(f"plan.{member} = {value};" for member, value in call.constants.items())
    out.all(f"plan.{call.member_of_plan.get(each, each)} = given.{each};" for each, _ in members)
    out("}")
    out()
    out("__aicore__ inline void Process()")
    out("{")
    out(f"opkit::kernels::{call.function}({', '.join((*passed, 'plan'))});", location)
    out("}")
    out()
    out("private:")
    out.all(f"GM_ADDR {each} = nullptr;" for each in addresses)
    out(f"opkit::kernels::{plan} plan = {{}};")
    out("};")
    return KernelClass(group.name, name, struct, declaration, out, addresses)
