"""Kernels that the tests run on the emulator, in both API generations. They are loaded by path, as a user's are."""
