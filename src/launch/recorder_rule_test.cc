#include "launch/launch_testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

RecorderConfig recorder(Change change, std::map<std::string, std::string> env = {}) {
  Machine machine;
  machine.env = std::move(env);
  return make(change, machine)->recorder;
}

Words names(const RecorderConfig& config) {
  Words names;
  for (const auto& variable : config.variables)
    names.push_back(variable.name);
  return names;
}

TEST(RecorderRule, WorkersAreToldWhereToDump) {
  const RecorderConfig config = recorder(unchanged);
  EXPECT_EQ(names(config), (Words{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE",
                                  "TORCH_FR_BUFFER_SIZE", "TORCH_INCLUDE_STACK_TRACE"}));
  EXPECT_EQ(config.variables[0].value, "rank_");
  EXPECT_TRUE(config.variables[0].in_folder);
  EXPECT_EQ(config.variables[2].value, "2000");
  EXPECT_FALSE(config.variables[2].in_folder);
  EXPECT_EQ(config.off, "");
}

TEST(RecorderRule, TheUsersVariablesStay) {
  const struct {
    std::map<std::string, std::string> env;
    const char* off;
  } rows[] = {
      {{{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/x"}}, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE is set"},
      {{{"TORCH_FR_DUMP_TEMP_FILE", "/x"}}, "TORCH_FR_DUMP_TEMP_FILE is set"},
      {{{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", ""}}, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE is set"},
      {{{"TORCH_FR_BUFFER_SIZE", "0"}}, "TORCH_FR_BUFFER_SIZE is 0"},
      {{{"TORCH_NCCL_TRACE_BUFFER_SIZE", "0"}}, "TORCH_NCCL_TRACE_BUFFER_SIZE is 0"},
  };
  for (const auto& row : rows) {
    const RecorderConfig config = recorder(unchanged, row.env);
    EXPECT_TRUE(config.variables.empty()) << row.off;
    EXPECT_EQ(config.off, row.off);
  }
  EXPECT_EQ(names(recorder(unchanged, {{"TORCH_NCCL_TRACE_BUFFER_SIZE", "100"},
                                       {"TORCH_INCLUDE_STACK_TRACE", "1"}})),
            (Words{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE",
                   "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_NCCL_DUMP_ON_TIMEOUT"}));
}

TEST(RecorderRule, TheAidNeedsRecordersThatAreAsked) {
  EXPECT_FALSE(recorder(unchanged).aid);
  const auto aided = [](RawOptions& raw) { raw.aid = true; };
  EXPECT_TRUE(recorder(aided).aid);
  EXPECT_FALSE(recorder(aided, {{"TORCH_FR_BUFFER_SIZE", "0"}}).aid);
  Machine machine;
  machine.env = {{"TORCH_FR_BUFFER_SIZE", "0"}};
  const auto config = make(aided, machine);
  EXPECT_TRUE(
      std::ranges::count(config->warnings, "--aid has no effect: TORCH_FR_BUFFER_SIZE is 0") == 1);
}

TEST(RecorderRule, NothingIsSetWithoutAWatch) {
  EXPECT_EQ(recorder([](RawOptions& raw) { raw.hang_after = "off"; }).off, "--hang-after off");
  EXPECT_EQ(recorder([](RawOptions& raw) { raw.called_torchrun = true; }).off, "as torchrun");
  EXPECT_EQ(recorder([](RawOptions& raw) { raw.log_dir = "/dev/null"; }).off, "no log directory");
}

}  // namespace
}  // namespace lockstep::launch
