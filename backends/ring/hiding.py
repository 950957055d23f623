#!/usr/bin/env python3
"""Where a ring stops hiding its traffic: a table on paper, for 8 to 1,024 devices.

A rank that has L queries computes 4 * Hq * D * L * L operations with each part, half of them under a causal mask that
zigzag parts even out, and meanwhile sends 2 * Hkv * D * L numbers on. The second is hidden while
L >= bytes * Hkv / Hq * speed / link / 2, under the causal mask twice that, and whatever D is.
"""
import argparse

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--speed", type=float, required=True, help="operations a second of one device's kernel, in 10^9")
parser.add_argument("--links", type=float, nargs="+", required=True, help="bytes a second from a device, in 10^9")
parser.add_argument("--seq", type=int, default=1048576, help="queries and keys")
parser.add_argument("--bytes", type=int, default=4, help="of a number in storage")
parser.add_argument("--group", type=float, default=1, help="query heads for each key head")
parser.add_argument("--causal", action="store_true", help="with zigzag parts")
given = parser.parse_args()

share = 0.5 if given.causal else 1
least = [given.bytes / given.group * given.speed / link / 2 / share for link in given.links]
print("| devices | queries each |" + "".join(f" at {link:g} GB/s |" for link in given.links))
print("|---|---|" + "---|" * len(given.links))
devices = 8
while devices <= 1024:
    length = given.seq / devices
    # Time of a step, as a multiple of what its computing takes.
    cells = ["hidden" if length >= least_of else f"{least_of / length:.2g} times as long" for least_of in least]
    print(f"| {devices:,} | {length:,.0f} |" + "".join(f" {cell} |" for cell in cells))
    devices *= 2
print("| least queries to hide | |" + "".join(f" {least_of:,.0f} |" for least_of in least))
