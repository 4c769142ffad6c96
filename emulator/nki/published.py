"""The names that NKI publishes, by module: what tells a call that is not emulated yet from one that does not exist.

Top-level names of the API's documentation stubs in aws-neuron-sdk: general/nki/api and nki/api of releases 2.20 to 2.26 for
`neuronxcc.nki`, nki/api of releases 2.27 to 2.32 for `nki`.
"""

from __future__ import annotations

from difflib import get_close_matches

_NAMES = {
    "neuronxcc.nki": """
        FrameworkKernel baremetal benchmark jit profile simulate_kernel tensor
    """,
    "neuronxcc.nki.isa": """
        activation activation_reduce affine_select attention_kernel attention_kernel_cache bn_aggr bn_stats
        builtin_custom_op dge_mode dma_copy dma_engine dma_transpose dropout engine fp32 get_nc_version gpsimd_engine iota
        local_gather max8 memset nc_find_index8 nc_match_replace8 nc_matmul nc_stream_shuffle nc_transpose nc_version
        oob_mode range_select reciprocal reduce_cmd scalar_engine scalar_tensor_tensor select_reduce sequence_bounds
        tensor_copy tensor_copy_dynamic_dst tensor_copy_dynamic_src tensor_copy_predicated tensor_engine
        tensor_partition_reduce tensor_reduce tensor_scalar tensor_scalar_reduce tensor_tensor tensor_tensor_scan
        unknown_engine vector_engine
    """,
    "neuronxcc.nki.language": """
        abs add affine_range all all_reduce arange arctan atomic_rmw bfloat16 bfp16 bitwise_and bitwise_or bitwise_xor
        bool_ broadcast_to ceil copy cos device_print divide dropout ds empty_like equal erf erf_dx exp expand_dims finfo
        float16 float32 float8_e4m3 float8_e5m2 floor fmod fp32 full gather_flattened gelu gelu_apprx_sigmoid
        gelu_apprx_tanh gelu_dx gemm_grid gemm_stationary_grid greater greater_equal hbm int16 int32 int8 invert
        left_shift less less_equal load load_transpose2d log logical_and logical_not logical_or logical_xor loop_reduce
        matmul max maximum mean mgrid min minimum mish mod multiply nc ndarray negative not_equal num_programs ones
        par_dim power private_hbm prod program_id program_ndim psum rand random_seed reciprocal relu right_shift rms_norm
        rsqrt sbuf sequential_range shared_constant shared_hbm shared_identity_matrix sigmoid sign silu silu_dx sin
        softmax softplus spmd_dim sqrt square static_cast static_range store subtract sum tan tanh tfloat32 tile_size
        transpose trunc uint16 uint32 uint8 var where zeros zeros_like
    """,
    "neuronxcc.nki.compiler": """
        allocation_scope enable_stack_allocator force_auto_alloc multi_buffer no_reorder psum sbuf
        skip_middle_end_transformations
    """,
    "neuronxcc.nki.kernels": """
        add_kernel_nx8x128x512 allocated_fused_rms_norm_qkv allocated_fused_self_attn_for_SD_small_head_size
        flash_attn_bwd flash_fwd fused_self_attn_for_SD_small_head_size resize_nearest_fixed_dma_kernel
        select_and_scatter_kernel
    """,
    "nki": """
        jit simulate
    """,
    "nki.isa": """
        NkiInstruction NkiValidationError VirtualRegister activate2 activation activation_reduce affine_select bn_aggr
        bn_stats core_barrier dge_mode dma_compute dma_copy dma_engine dma_transpose dropout engine exponential
        get_nc_sub_version get_nc_version gpsimd_engine iota local_gather matmul_perf_mode max8 memset nc_find_index8
        nc_match_replace8 nc_matmul nc_matmul_mx nc_n_gather nc_stream_shuffle nc_transpose nc_version nonzero_with_count
        oob_mode quantize_mx rand2 rand_get_state rand_set_state range_select reciprocal reduce_cmd register_alloc
        register_load register_move register_store rng scalar_engine scalar_tensor_tensor select_reduce sendrecv
        sequence_bounds set_rng_seed tensor_copy tensor_copy_dynamic_dst tensor_copy_dynamic_src tensor_copy_predicated
        tensor_engine tensor_partition_reduce tensor_reduce tensor_scalar tensor_scalar_cumulative tensor_scalar_reduce
        tensor_tensor tensor_tensor_scan topk unknown_engine vector_engine
    """,
    "nki.language": """
        DType MemoryRegion NKIObject NkiTensor abs abs_max abs_min add affine_range all arctan average bfloat16
        bitwise_and bitwise_or bitwise_xor bool_ broadcast_to bypass ceil copy cos device_print divide dropout ds
        dynamic_range empty_like equal erf erf_dx exp expand_dims float16 float32 float4_e2m1fn_x4 float8_e4m3
        float8_e4m3fn float8_e4m3fn_x4 float8_e5m2 float8_e5m2_x4 float8_e8m0fnu floor fmod fori_loop full
        gather_flattened gelu gelu_apprx_sigmoid gelu_apprx_sigmoid_dx gelu_apprx_tanh gelu_dx greater greater_equal hbm
        int16 int32 int8 invert is_hbm is_on_chip is_psum is_sbuf left_shift less less_equal load load_transpose2d log
        logical_and logical_not logical_or logical_xor matmul max maximum mean min minimum mish mod multiply ndarray
        negative no_reorder not_equal num_programs ones power prelu private_hbm prod program_id program_ndim psum rand
        random_seed reciprocal relu right_shift rms_norm rsqrt sbuf sequential_range shared_constant shared_hbm
        shared_identity_matrix sigmoid sign silu silu_dx sin softmax softplus sqrt square static_range store subtract sum
        tan tanh tfloat32 tile_size transpose trunc uint16 uint32 uint8 var where while_loop zeros zeros_like
    """,
    "nki.collectives": """
        ReplicaGroup all_gather all_gather_v all_reduce all_to_all all_to_all_v collective_permute
        collective_permute_implicit collective_permute_implicit_current_processing_rank_id
        collective_permute_implicit_reduce rank_id reduce_scatter
    """,
}
_PUBLISHED = {module: frozenset(names.split()) for module, names in _NAMES.items()}


def missing(module: str, name: str, known: set[str]) -> str:
    """What to say of `module.name`, which the emulator does not have; `known` are the names that it has there.

    A name that NKI publishes is not emulated yet. Any other is a slip: the text says so and names the nearest one. Modules whose
    names are not published say that they are not emulated yet.
    """
    names = _PUBLISHED.get(module)
    if names is None or name in names or f"{module}.{name}" in _PUBLISHED:
        return "is not emulated yet"
    other = module.removeprefix("neuronxcc.") if module.startswith("neuronxcc.") else f"neuronxcc.{module}"
    if name in _PUBLISHED.get(other, ()):
        return f"does not exist in NKI; only {other} has it"
    near = get_close_matches(name, sorted(names | known), n=1)
    return (
        f"does not exist in NKI; did you mean {module}.{near[0]}?" if near else "does not exist in NKI; look its name up in the API"
    )
