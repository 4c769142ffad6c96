"""A kernel's text for the source pane; it is shown, never run."""


def tiled(ops, lhs, rhs, out):
    for m in range(4):
        left = load(ops, lhs, m)
        for n in range(3):
            right = load(ops, rhs, n)
            product = ops.matmul(left, right)
            ops.store(out, m, n, ops.activate(product))


def load(ops, tensor, index):
    tile = ops.sbuf(128, 512)
    ops.dma_copy(tile, tensor[index])
    return tile
