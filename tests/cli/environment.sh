# Sourced by the scripts here: what the user's environment asks of attest and its libraries is none of a test's. The names
# are those of harness/run/run_conditions.cpp and attest's own; how threads wait and where caches lie changes no result.
for variable in $(compgen -e); do
  case $variable in
    OMP_WAIT_POLICY | OPENBLAS_THREAD_TIMEOUT | POCL_CACHE_DIR) ;;
    ATTEST_* | BLIS_* | CL_CONFIG_* | CLBLAST_* | CUDA_VISIBLE_DEVICES | GLIBC_TUNABLES | GOMP_* | GOTO_NUM_THREADS | HIP_* | \
      KMP_* | MKL_* | OCL_* | OMP_* | OPENBLAS_* | POCL_* | ROCR_*) unset "$variable" ;;
  esac
done
# Nor is what `attest tune` keeps in the user's cache.
export ATTEST_PARAMETERS=standard
