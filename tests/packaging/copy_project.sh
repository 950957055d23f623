# Sourced. copy_project SOURCE TO: what git would clone, with the edits of the moment.
copy_project() {
  mkdir "$2"
  git -C "$1" ls-files -z --cached --others --exclude-standard | (cd "$1" && xargs -0 cp --parents -t "$2" 2>/dev/null) || true
}
example_alone="-DATTEST_TESTS=OFF -DATTEST_BACKEND_EIGEN=OFF -DATTEST_BACKEND_XTENSOR=OFF -DATTEST_BACKEND_OPENCL=OFF
  -DATTEST_BACKEND_CLBLAST=OFF -DATTEST_BACKEND_SIMD=OFF -DATTEST_MPI=OFF -DATTEST_WERROR=ON"
