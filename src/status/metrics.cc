// Prints metrics for Prometheus.
#include "status/metrics.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::status {
namespace {

// The only three escapes of both formats.
std::string escaped(std::string text) {
  // Backslashes first: the other escapes add backslashes.
  replace_all(text, "\\", "\\\\");
  replace_all(text, "\"", "\\\"");
  replace_all(text, "\n", "\\n");
  return text;
}

enum class MetricType { gauge, counter, info };

struct Family {
  // Without "lockstep_", and without the suffix "_total" or "_info" of its samples.
  const char* name;
  MetricType type;
  const char* unit;  // the end of the name; "": none
  const char* help;
};

class Printer {
 public:
  Printer(const Metrics& metrics, MetricsFormat format)
      : format_(format),
        labels_(fmt::format(R"(run_id="{}",role="{}",node="{}")", escaped(metrics.run_id),
                            escaped(metrics.role), escaped(metrics.node))) {}

  // Samples of a family follow its begin.
  void begin(const Family& family) {
    const std::string name = fmt::format("lockstep_{}", family.name);
    sample_ = name;
    if (family.type == MetricType::counter) sample_ += "_total";
    if (family.type == MetricType::info) sample_ += "_info";
    const bool open = format_ == MetricsFormat::open_metrics;
    // In the text format a family is named as its samples are, and info is unknown.
    const std::string& shown = open ? name : sample_;
    const std::string_view type = family.type == MetricType::counter        ? "counter"
                                  : family.type == MetricType::info && open ? "info"
                                                                            : "gauge";
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", shown, family.help, type);
    if (open && *family.unit != 0) text_ += fmt::format("# UNIT {} {}\n", shown, family.unit);
  }

  void add(std::string_view value, std::string_view more_labels = {}) {
    text_ += fmt::format("{}{{{}{}}} {}\n", sample_, labels_, more_labels, value);
  }

  std::string take() {
    // OpenMetrics demands this line: without it a reader takes the text for cut off.
    if (format_ == MetricsFormat::open_metrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  MetricsFormat format_;
  std::string labels_;
  std::string sample_;
  std::string text_;
};

struct NodeRow {
  Family family;
  std::int64_t value;
};

void print_node(const Metrics& m, Printer& printer) {
  using enum MetricType;
  const std::array rows = {
      NodeRow{{"workers_running", gauge, "", "Worker processes alive on this node."},
              m.workers_running},
      NodeRow{{"workers_expected", gauge, "", "Worker processes this node should run."},
              m.workers_expected},
      NodeRow{{"workers_attempts", counter, "", "Worker groups started."}, m.attempts_total},
      NodeRow{{"workers_restarts", counter, "", "Restarts counted against --max-restarts."},
              m.restarts_total},
      NodeRow{{"workers_restarts_remaining", gauge, "", "Restarts left."}, m.restarts_remaining},
      NodeRow{{"workers_failures", counter, "", "Workers that failed."}, m.failures_total},
      NodeRow{
          {"workers_membership_changes", counter, "", "New rounds because a node came or went."},
          m.membership_changes_total},
      NodeRow{{"world_size", gauge, "", "Ranks in the current round."}, m.world_size},
      NodeRow{{"group_rank", gauge, "", "This node's place in the current round."}, m.group_rank},
  };
  for (const NodeRow& row : rows) {
    printer.begin(row.family);
    printer.add(std::to_string(row.value));
  }
  printer.begin({"start_time_seconds", gauge, "seconds", "Unix time at which the agent started."});
  printer.add(fmt::format("{:.3f}", m.start_time_s));
  printer.begin({"job", info, "", "The job that the agent runs."});
  printer.add("1",
              fmt::format(R"(,command="{}",version="{}")", escaped(m.command), escaped(m.version)));
}

void print_goodput(const Goodput& goodput, Printer& printer) {
  printer.begin({"goodput_seconds", MetricType::counter, "seconds",
                 "Time of this node by phase. Looks once a second tell start, training, waiting "
                 "and input apart, step lines training and redone: guessed without --progress."});
  for (std::size_t i = 0; i < kPhaseWords.size(); ++i) {
    if (!goodput.knows(static_cast<Phase>(i))) continue;
    const std::chrono::duration<double> spent = goodput.of(static_cast<Phase>(i));
    printer.add(fmt::format("{:.3f}", spent.count()),
                fmt::format(R"(,phase="{}")", kPhaseWords[i]));
  }
  printer.begin({"goodput_ratio", MetricType::gauge, "ratio",
                 "Share of training in that time, without redone."});
  printer.add(fmt::format("{}", goodput.share()));
}

void print_state(std::span<const std::string_view> words, std::string_view state,
                 std::string_view labels, Printer& printer) {
  for (const std::string_view word : words)
    printer.add(word == state ? "1" : "0", fmt::format(R"({},state="{}")", labels, word));
}

// Returns one number of a row. nullopt: not known; then the rank has no sample.
struct RankFamily {
  Family family;
  std::optional<double> (*value)(const looks::RankRow&);
};

constexpr std::array kRankFamilies = {
    RankFamily{{"rank_cpu_cores", MetricType::gauge, "cores",
                "CPU cores in use by the rank and its descendants."},
               [](const looks::RankRow& row) -> std::optional<double> { return row.cpu; }},
    RankFamily{{"rank_memory_bytes", MetricType::gauge, "bytes",
                "Resident memory of the rank and its descendants."},
               [](const looks::RankRow& row) -> std::optional<double> {
                 return static_cast<double>(row.memory_bytes);
               }},
    RankFamily{{"rank_waiting_ratio", MetricType::gauge, "ratio",
                "Share of the last minute in which the rank waited for other ranks."},
               [](const looks::RankRow& row) { return row.waiting_share; }},
    RankFamily{{"rank_input_ratio", MetricType::gauge, "ratio",
                "Share of the last minute in which the rank waited for its data loader."},
               [](const looks::RankRow& row) { return row.input_share; }},
    RankFamily{{"rank_loaders", MetricType::gauge, "", "Data loader processes of the rank."},
               [](const looks::RankRow& row) -> std::optional<double> { return row.loaders; }},
    RankFamily{{"rank_output_age_seconds", MetricType::gauge, "seconds",
                "Time since the last output of the rank."},
               [](const looks::RankRow& row) -> std::optional<double> {
                 if (row.output_age_ms < 0) return std::nullopt;
                 return static_cast<double>(row.output_age_ms) / 1000;
               }},
    RankFamily{{"rank_step", MetricType::gauge, "", "Step of the training, by the rank's output."},
               [](const looks::RankRow& row) -> std::optional<double> {
                 if (!row.step) return std::nullopt;
                 return static_cast<double>(*row.step);
               }},
    RankFamily{
        {"rank_steps_per_second", MetricType::gauge, "", "Steps a second, by the rank's output."},
        [](const looks::RankRow& row) { return row.steps_per_s; }},
};

void print_ranks(const looks::NodeRows& rows, Printer& printer) {
  std::vector<std::string> labels;
  labels.reserve(rows.rows.size());
  for (const looks::RankRow& row : rows.rows)
    labels.push_back(fmt::format(R"(,rank="{}")", row.rank));
  printer.begin({"job_state", MetricType::gauge, "", "1 for the state of the job, else 0."});
  print_state(looks::kVerdictStateWords, rows.state, {}, printer);
  printer.begin({"rank_state", MetricType::gauge, "", "1 for the state of the rank, else 0."});
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    print_state(looks::kRankStateWords, rows.rows[i].state, labels[i], printer);
  for (const RankFamily& rank : kRankFamilies) {
    printer.begin(rank.family);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      // An ended rank uses nothing; its last numbers would only mislead.
      const auto value = rows.rows[i].state == "gone" ? std::nullopt : rank.value(rows.rows[i]);
      if (value) printer.add(fmt::format("{}", *value), labels[i]);
    }
  }
}

// Returns the quality of "text/plain; version=0.0.4; q=0.5". An Accept header without one means 1.
double quality_of(std::string_view wish) {
  for (const std::string& part : split(wish, ';')) {
    const std::string_view word = strip(part);
    if (word.starts_with("q=")) return parse_float(word.substr(2)).value_or(0);
  }
  return 1;
}

}  // namespace

MetricsFormat preferred_format(std::string_view accept) {
  double open = 0;
  double text = 0;
  for (const std::string& wish : split(accept, ',')) {
    const std::string kind = to_lower(strip(wish.substr(0, wish.find(';'))));
    if (kind == "application/openmetrics-text") open = std::max(open, quality_of(wish));
    if (kind == "text/plain" || kind == "text/*") text = std::max(text, quality_of(wish));
  }
  return open > 0 && open >= text ? MetricsFormat::open_metrics : MetricsFormat::text;
}

std::string_view content_type_of(MetricsFormat format) {
  return format == MetricsFormat::open_metrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_text(const Metrics& metrics, const looks::NodeRows& rows,
                         MetricsFormat format) {
  Printer printer(metrics, format);
  print_node(metrics, printer);
  print_goodput(metrics.goodput, printer);
  print_ranks(rows, printer);
  return printer.take();
}

}  // namespace lockstep::status
