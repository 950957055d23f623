"""Adapters to attention as other libraries ship it, one module for each, to be held against attest's reference."""
