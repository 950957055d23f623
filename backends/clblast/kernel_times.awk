# What each kernel took, from a trace of PoCL's:
#   POCL_TRACING=text POCL_TRACING_OPT=trace.txt attest bench ... && awk -f kernel_times.awk trace.txt
# Milliseconds of the mean run, as there are runs of masked_softmax or gradient_rows, and the share of all kernels' time.

BEGIN { FS = " [|] " }

# 2875806735757 | EV ID 178 | DEV 1 | CQ 4 | ndrange_kernel | running | KERNEL ID 6 | name=attend_cpu
$5 ~ /fill_buffer/ || $5 ~ /ndrange_kernel/ {
  name = "fill_buffer"
  if (match($0, /name=.*/)) name = substr($0, RSTART + 5, RLENGTH - 5)
  if ($6 ~ /running/) began[$2] = $1
  if ($6 ~ /complete/ && $2 in began) {
    took[name] += $1 - began[$2]
    all += $1 - began[$2]
    if ((name == "masked_softmax" || name == "gradient_rows") && ++seen[name] > runs) runs = seen[name]
  }
}
END {
  if (!runs) { print "no run of clblast in the trace" > "/dev/stderr"; exit 1 }
  for (name in took) printf "%9.3f ms %5.1f%%  %s\n", took[name] / runs / 1e6, 100 * took[name] / all, name | "sort -rn"
}
