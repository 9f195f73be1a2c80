#include "status/metrics.h"

#include <gtest/gtest.h>

namespace lockstep::status {
namespace {

TEST(Metrics, SamplesCarryHelpTypeAndLabels) {
  Metrics metrics;
  metrics.run_id = "a\"b\\c\nd";
  metrics.node = "n0";
  metrics.workers_running = 4;
  metrics.start_time_s = 1790000000.25;
  const std::string text = metrics_text(metrics);
  EXPECT_NE(
      text.find(
          "# HELP lockstep_workers_running Worker processes alive on this node.\n"
          "# TYPE lockstep_workers_running gauge\n"
          "lockstep_workers_running{run_id=\"a\\\"b\\\\c\\nd\",role=\"default\",node=\"n0\"} 4\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("# TYPE lockstep_workers_restarts_total counter\n"), std::string::npos);
  EXPECT_NE(text.find("} 1790000000.250\n"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace lockstep::status
