#include "backends/registry.h"
#include "harness/cli/cli.h"

int main(int argc, char** argv) { return attest::run_command_line(argc, argv, attest::registered_backends()); }
