"""Kernels that come with trnscope, in both API generations: loaded by path like a user's, never imported."""
