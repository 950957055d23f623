"""Callables that attack the interpreter which runs them. Imported by tests and by workers."""

import os
import signal

import kernels


def exits(q, k, v):
    os._exit(0)


def crashes(q, k, v):
    os.kill(os.getpid(), signal.SIGSEGV)


def loops(q, k, v):
    while True:
        pass


kept = []


def leaks(q, k, v):
    kept.append(bytearray(os.urandom(1) * (200 << 20)))
    return kernels.attention(q, k, v)
