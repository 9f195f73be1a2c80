#include "status/metrics.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

namespace lockstep::status {
namespace {

Metrics sample_metrics() {
  Metrics metrics;
  metrics.run_id = "a\"b\\c\nd";
  metrics.node = "n0";
  metrics.workers_running = 4;
  metrics.start_time_s = 1790000000.25;
  metrics.command = "train.py";
  metrics.version = "1.2.3";
  return metrics;
}

looks::NodeRows sample_rows() {
  looks::NodeRows rows{.node = "n0", .state = "hung"};
  rows.rows = {{.rank = 0,
                .state = "waiting",
                .cpu = 0.25,
                .memory_bytes = 5'000'000'000,
                .waiting_share = 0.5,
                .output_age_ms = 1500},
               {.rank = 1, .state = "hung", .step = 7, .steps_per_s = 2.5},
               {.rank = 2, .state = "gone", .cpu = 9}};
  return rows;
}

// What a scraper insists on: a family is one block of HELP, TYPE, perhaps UNIT, and samples with
// names of the family; no sample comes twice.
void check_format(const std::string& text, bool open) {
  const std::string label = R"re([a-z_]+="(?:[^"\\\n]|\\[\\"n])*")re";
  const std::regex sample("([a-zA-Z_:][a-zA-Z0-9_:]*)\\{(" + label + "(?:," + label +
                          ")*)\\} (-?[0-9.e+]+)");
  std::set<std::string> families;
  std::set<std::string> samples;
  std::string family;
  std::string type;
  ASSERT_TRUE(text.ends_with('\n'));
  const auto lines = split(text.substr(0, text.size() - 1), '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto words = split(lines[i], ' ');
    if (lines[i] == "# EOF") {
      EXPECT_TRUE(open && i + 1 == lines.size());
    } else if (words[0] == "#") {
      ASSERT_GE(words.size(), 4U) << lines[i];
      if (words[1] == "HELP") {
        family = words[2];
        EXPECT_TRUE(families.insert(family).second) << "twice: " << family;
      }
      EXPECT_EQ(words[2], family) << lines[i];
      if (words[1] == "TYPE") type = words[3];
      if (words[1] == "UNIT") {
        EXPECT_TRUE(open);
        EXPECT_TRUE(family.ends_with("_" + words[3])) << lines[i];
      }
    } else {
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(lines[i], parts, sample)) << lines[i];
      const std::string suffix = !open               ? ""
                                 : type == "counter" ? "_total"
                                 : type == "info"    ? "_info"
                                                     : "";
      EXPECT_EQ(parts[1].str(), family + suffix);
      if (!open && type == "counter") {
        EXPECT_TRUE(family.ends_with("_total")) << family;
      }
      EXPECT_TRUE(samples.insert(parts[1].str() + parts[2].str()).second) << lines[i];
    }
  }
  EXPECT_EQ(lines.back() == "# EOF", open);
}

TEST(Metrics, BothFormatsAreWellFormed) {
  check_format(metrics_text(sample_metrics(), sample_rows(), MetricsFormat::text), false);
  check_format(metrics_text(sample_metrics(), sample_rows(), MetricsFormat::open_metrics), true);
  check_format(metrics_text(sample_metrics(), {}, MetricsFormat::open_metrics), true);
}

TEST(Metrics, SamplesCarryHelpTypeAndLabels) {
  const std::string text = metrics_text(sample_metrics(), {}, MetricsFormat::text);
  EXPECT_NE(
      text.find(
          "# HELP lockstep_workers_running Worker processes alive on this node.\n"
          "# TYPE lockstep_workers_running gauge\n"
          "lockstep_workers_running{run_id=\"a\\\"b\\\\c\\nd\",role=\"default\",node=\"n0\"} 4\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("# TYPE lockstep_workers_restarts_total counter\n"), std::string::npos);
  EXPECT_NE(text.find("} 1790000000.250\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE lockstep_job_info gauge\nlockstep_job_info{"), std::string::npos);
}

TEST(Metrics, RanksHaveALabel) {
  const std::string text =
      metrics_text(sample_metrics(), sample_rows(), MetricsFormat::open_metrics);
  const auto has = [&](const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
  };
  const std::string labels = R"({run_id="a\"b\\c\nd",role="default",node="n0",)";
  EXPECT_TRUE(has("lockstep_rank_cpu_cores" + labels + R"(rank="0"} 0.25)")) << text;
  EXPECT_TRUE(has("lockstep_rank_memory_bytes" + labels + R"(rank="0"} 5000000000)")) << text;
  EXPECT_TRUE(has("# UNIT lockstep_rank_memory_bytes bytes"));
  EXPECT_TRUE(has("lockstep_rank_output_age_seconds" + labels + R"(rank="0"} 1.5)"));
  EXPECT_TRUE(has("lockstep_rank_state" + labels + R"(rank="1",state="hung"} 1)"));
  EXPECT_TRUE(has("lockstep_rank_state" + labels + R"(rank="1",state="waiting"} 0)"));
  EXPECT_TRUE(has("lockstep_job_state" + labels + R"(state="hung"} 1)"));
  EXPECT_TRUE(has("lockstep_rank_step" + labels + R"(rank="1"} 7)"));
  EXPECT_TRUE(has("# TYPE lockstep_workers_restarts counter"));
  // A rank without the number, and a rank that has ended, have no sample.
  EXPECT_FALSE(has("lockstep_rank_step" + labels + R"(rank="0"} 0)"));
  EXPECT_EQ(text.find(R"(lockstep_rank_cpu_cores)" + labels + R"(rank="2")"), std::string::npos);
}

TEST(Metrics, TheFormatIsTheScrapersWish) {
  EXPECT_EQ(preferred_format(""), MetricsFormat::text);
  EXPECT_EQ(preferred_format("*/*"), MetricsFormat::text);
  EXPECT_EQ(preferred_format("text/html,text/plain;q=0.5"), MetricsFormat::text);
  EXPECT_EQ(preferred_format("application/openmetrics-text;q=0"), MetricsFormat::text);
  EXPECT_EQ(preferred_format("application/openmetrics-text; q=0.1, text/plain"),
            MetricsFormat::text);
  EXPECT_EQ(preferred_format("Application/OpenMetrics-Text"), MetricsFormat::open_metrics);
  // As Prometheus 2.42 asks.
  EXPECT_EQ(preferred_format("application/openmetrics-text;version=1.0.0,"
                             "application/openmetrics-text;version=0.0.1;q=0.75,"
                             "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            MetricsFormat::open_metrics);
}

}  // namespace
}  // namespace lockstep::status
