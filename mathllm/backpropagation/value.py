"""Reverse mode in fifty lines: a number that remembers how it was computed.

The same idea as `autodiff`, for single numbers: every operation stores its parents and the local derivative with
respect to each, and `backward` multiplies and adds them in reverse order.
"""

from __future__ import annotations

import math


class Value:
    """A number, the numbers it was computed from, and its derivative with respect to each of them.

        ∂L/∂x = Σ over all values y computed from x of ∂L/∂y · ∂y/∂x                (11.9)

    Source: after micrograd (Karpathy 2020).

    >>> a, b = Value(2.0), Value(3.0)
    >>> loss = (a * b + a).relu()
    >>> loss.backward()
    >>> loss.data, a.grad, b.grad
    (8.0, 4.0, 2.0)
    """

    __slots__ = ("data", "depth", "grad", "parents")

    def __init__(self, data: float, parents: tuple = ()):
        self.data = float(data)
        self.grad = 0.0
        self.parents = parents  # ((parent, ∂self/∂parent), …)
        self.depth = 1 + max((parent.depth for parent, _ in parents), default=0)

    def __repr__(self):
        return f"Value({self.data:g}, grad={self.grad:g})"

    def __add__(self, other):
        other = _value(other)
        return Value(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        other = _value(other)
        return Value(self.data * other.data, ((self, other.data), (other, self.data)))

    def __pow__(self, n: float):
        return Value(self.data**n, ((self, n * self.data ** (n - 1) if n else 0.0),))

    def relu(self) -> Value:
        """The number, or 0 if it is negative."""
        return Value(max(self.data, 0.0), ((self, float(self.data > 0)),))

    def exp(self) -> Value:
        """The exponential."""
        return Value(math.exp(self.data), ((self, math.exp(self.data)),))

    def log(self) -> Value:
        """The natural logarithm."""
        return Value(math.log(self.data), ((self, 1 / self.data),))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -_value(other)

    def __rsub__(self, other):
        return _value(other) + -self

    def __truediv__(self, other):
        return self * _value(other) ** -1

    def __rtruediv__(self, other):
        return _value(other) * self**-1

    def backward(self) -> None:
        """Set `grad` of every value below this one to the derivative of this one with respect to it."""
        below, unseen = {id(self): self}, [self]
        while unseen:
            for parent, _ in unseen.pop().parents:
                if id(parent) not in below:
                    below[id(parent)] = parent
                    unseen.append(parent)
        order = sorted(below.values(), key=lambda value: -value.depth)  # all children before their parents
        for value in order:
            value.grad = 0.0  # otherwise the gradients of two backward passes would add up
        self.grad = 1.0
        for value in order:
            for parent, derivative in value.parents:
                parent.grad += value.grad * derivative


def _value(other):
    return other if isinstance(other, Value) else Value(other)
