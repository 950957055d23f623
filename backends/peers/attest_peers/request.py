"""What a call asks for, as arrays; and words for what libraries with one mask and one bias can take."""

from attest._request import ADDING, CACHE, HIDING, SHAPES, Request, compact

__all__ = ["ADDING", "CACHE", "HIDING", "SHAPES", "Request", "compact"]
