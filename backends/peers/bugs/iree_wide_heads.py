"""IREE on processors: `iree_linalg_ext.attention` gives wrong numbers for heads wider than 128; `vmvx` is right."""

import iree.compiler
import iree.runtime
import numpy as np

TEXT = """
func.func @attention(%q: tensor<1x8xDIMxf32>, %k: tensor<1x8xDIMxf32>, %v: tensor<1x8x4xf32>, %scale: f32)
    -> tensor<1x8x4xf32> {
  %empty = tensor.empty() : tensor<1x8x4xf32>
  %o = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(b, m, n, d, s) -> (b, m, d)>, affine_map<(b, m, n, d, s) -> (b, s, d)>,
      affine_map<(b, m, n, d, s) -> (b, s, n)>, affine_map<(b, m, n, d, s) -> ()>,
      affine_map<(b, m, n, d, s) -> (b, m, n)>]}>
      ins(%q, %k, %v, %scale : tensor<1x8xDIMxf32>, tensor<1x8xDIMxf32>, tensor<1x8x4xf32>, f32)
      outs(%empty : tensor<1x8x4xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<1x8x4xf32>
  return %o : tensor<1x8x4xf32>
}
"""
random = np.random.default_rng(0)
bad = False
for target in ("llvm-cpu", "vmvx"):
    off = {}
    for dim in (64, 128, 129, 192, 256):
        q, k, v = (random.standard_normal((1, 8, width)).astype(np.float32) for width in (dim, dim, 4))
        scale = dim**-0.5
        weights = np.exp(q @ k.swapaxes(1, 2) * scale)
        expected = weights @ v / weights.sum(-1, keepdims=True)
        flags = ["--iree-llvmcpu-target-cpu=host"]
        binary = iree.compiler.compile_str(TEXT.replace("DIM", str(dim)), target_backends=[target], extra_args=flags)
        context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, binary))
        made = context.modules.module.attention(q, k, v, scale)
        off[dim] = float(f"{np.abs(made.to_host() - expected).max():.1g}")
    print(f"{target}: got errors of {off} by the width of heads, expected 1e-06 for each")
    bad |= target == "llvm-cpu" and any(error > 1e-4 for error in off.values())
raise SystemExit(bad)
