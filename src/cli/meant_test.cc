#include "cli/meant.h"

#include "cli/run_options.h"
#include "cli/store_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Meant, OtherLaunchersNamesLeadToOptions) {
  EXPECT_EQ(meant_option(run_table(), "num-processes"), "nproc-per-node");
  EXPECT_EQ(meant_option(run_table(), "num-machines"), "nnodes");
  EXPECT_EQ(meant_option(run_table(), "main-process-port"), "master-port");
  EXPECT_EQ(meant_option(run_table(), "max-retries"), "max-restarts");
  EXPECT_EQ(meant_option(run_table(), "rdzv-endpont"), "rdzv-endpoint");
  EXPECT_EQ(meant_option(store_table(), "num-machines"), std::nullopt);
}

TEST(Meant, VariablesNearOnesThatAreRead) {
  EXPECT_EQ(mistyped_variables(run_table(), Words{"PET_NPROCS", "PATH", "PET_RDZV_ENDPONT"}),
            (Words{"the environment variable PET_NPROCS is not read: "
                   "did you mean PET_NPROC_PER_NODE?",
                   "the environment variable PET_RDZV_ENDPONT is not read: "
                   "did you mean PET_RDZV_ENDPOINT?"}));
}

TEST(Meant, OtherVariablesStayUnmentioned) {
  for (const char* name : {"PET_NNODES", "PET_NAME", "PET_", "PET_TRAINING_SCRIPT", "PETS_NNODES",
                           "PET_LOGS_SPECS", "PET_NUMA_BINDING", "PET_ISOLATION", "NNODE"})
    EXPECT_EQ(mistyped_variables(run_table(), Words{name}), Words{}) << name;
}

}  // namespace
}  // namespace lockstep::cli
