// Applies the options about logs: files, prefixes of lines, filters and copies.
#include "base/text.h"
#include "codec/python_template.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace lockstep::launch {
namespace {

constexpr std::string_view kTorchrunPrefix = "[${role_name}${local_rank}]:";
constexpr std::string_view kReadablePrefix = "[${role_name} ${local_rank}] ";
constexpr std::string_view kTimePrefix = "${time} [${role_name} ${local_rank}] ";

// /dev/null switches log files off, as with torchrun.
Status apply_log_dir(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  if (!raw.log_dir || raw.log_dir->empty()) return {};
  config.logs.disabled = *raw.log_dir == "/dev/null";
  if (config.logs.disabled) return {};
  const FileKind kind = facts.file_kind(*raw.log_dir);
  if (kind == FileKind::file || kind == FileKind::other)
    return fail(Errc::invalid_input, fmt::format("log_dir: {} is a file", printable(*raw.log_dir)));
  config.logs.base_dir = *raw.log_dir;
  return {};
}

Result<std::optional<LogConfig::Filter>> ranks_filter(const std::string& text) {
  if (text.empty()) return std::nullopt;
  LogConfig::Filter filter;
  for (const std::string& item : split(text, ',')) {
    constexpr std::string_view kGlobal = "rank:";
    std::string_view number = strip(item);
    const bool global = number.starts_with(kGlobal);
    if (global) number.remove_prefix(kGlobal.size());
    const auto rank = parse_int(number);
    if (!rank || *rank > (1 << 30) || *rank < -(1 << 30))
      return fail(
          Errc::invalid_input,
          fmt::format("--local-ranks-filter must be a comma-separated list of integers, got {}",
                      printable(text)),
          "as --local-ranks-filter 0,1; rank:3 stands for global rank 3");
    (global ? filter.global_ranks : filter.local_ranks).insert(static_cast<int>(*rank));
  }
  return filter;
}

// Splits "a,,b,c" into "a,b" and "c". Drops empty items, because an empty text matches every line.
std::vector<std::string> line_filters(std::string_view text) {
  std::vector<std::string> filters(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      filters.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      filters.back() += ',';
      ++i;
    } else {
      filters.emplace_back();
    }
  }
  std::erase(filters, "");
  return filters;
}

// Parses a size such as "100M". Units are powers of 1024, as in logrotate.
Result<std::uint64_t> max_size(const std::string& text) {
  constexpr std::uint64_t kLeast = 1024;
  std::string_view number = strip(text);
  int shift = 0;
  if (!number.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const char unit = static_cast<char>(number.back() & ~0x20);  // either case
    const std::size_t at = kUnits.find(unit);
    if (at != kUnits.npos) shift = 10 * static_cast<int>(at + 1);
    if (shift != 0) number.remove_suffix(1);
  }
  const auto count = parse_int(number);
  if (!count || *count < 1 || *count > (INT64_MAX >> shift) ||
      (static_cast<std::uint64_t>(*count) << shift) < kLeast)
    return fail(Errc::invalid_input,
                fmt::format("--log-max-size must be a number of bytes, at least 1K, got {}",
                            printable(text)),
                "as 100M or 2G");
  return static_cast<std::uint64_t>(*count) << shift;
}

Result<std::string> prefix_template(const RawOptions& raw, const Facts& facts) {
  if (!raw.log_line_prefix_template.empty()) return raw.log_line_prefix_template;
  // A template of the user's, by option, wins over --log-prefix.
  if (raw.log_prefix == "readable") return std::string(kReadablePrefix);
  if (raw.log_prefix == "time") return std::string(kTimePrefix);
  if (raw.log_prefix != "torchrun")
    return fail(Errc::invalid_input,
                fmt::format("--log-prefix must be one of torchrun, readable, time, got {}",
                            printable(raw.log_prefix)));
  const auto env = facts.env("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  return env && !env->empty() ? *env : std::string(kTorchrunPrefix);
}

Result<LogConfig::Fold> fold(const std::string& text) {
  if (text == "auto") return LogConfig::Fold::automatic;
  if (text == "always") return LogConfig::Fold::always;
  if (text == "never") return LogConfig::Fold::never;
  return fail(Errc::invalid_input,
              fmt::format("--fold must be one of auto, always, never, got {}", printable(text)));
}

// Warns about unknown macros, which stay in the text. torchrun keeps them without a word.
void warn_of_macros(LaunchConfig& config) {
  const codec::TemplateNames known = {
      {"role_name", {}}, {"local_rank", {}}, {"rank", {}}, {"hostname", {}}, {"time", {}}};
  const auto unknown = codec::unknown_names(config.logs.prefix_template, known);
  if (unknown.empty()) return;
  config.warnings.push_back(
      fmt::format("${{{}}} in the log line prefix template is not known and stays as it is: the "
                  "macros are ${{role_name}}, ${{local_rank}}, ${{rank}}, ${{hostname}}, ${{time}}",
                  printable(unknown.front())));
}

// Warns about a filter that shows no worker. With several nodes, global ranks are unknown here.
void warn_of_filter(LaunchConfig& config) {
  const auto& filter = config.logs.filter;
  if (!filter || (!config.alone() && !filter->global_ranks.empty())) return;
  const auto here = [&config](int rank) { return rank >= 0 && rank < config.nproc; };
  if (std::any_of(filter->local_ranks.begin(), filter->local_ranks.end(), here) ||
      std::any_of(filter->global_ranks.begin(), filter->global_ranks.end(), here))
    return;
  config.warnings.push_back(fmt::format(
      "--local-ranks-filter matches no worker of this node, so the console shows none: {}",
      config.nproc == 1 ? "its only local rank is 0"
                        : fmt::format("its local ranks are 0 to {}", config.nproc - 1)));
}

}  // namespace

Status apply_logs(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  if (raw.logs_specs && *raw.logs_specs != "default")  // the name of torchrun's own
    return fail(
        Errc::invalid_input,
        fmt::format("Could not find entrypoint under 'torchrun.logs_specs[{}]' key: --logs-specs "
                    "names a Python plug-in, which Lockstep does not load",
                    printable(*raw.logs_specs)),
        "leave --logs-specs out; --log-dir, --redirects and --tee say where output goes");
  LOCKSTEP_TRY(apply_log_dir(raw, facts, config));
  // The run id becomes a directory's name.
  if (!config.logs.disabled && config.run_id.find('/') != std::string::npos)
    return fail(Errc::invalid_input,
                fmt::format("run id '{}' must not contain a slash: a directory is named after it",
                            printable(config.run_id)),
                "choose another --rdzv-id, or --log-dir /dev/null");
  auto redirects = logs::parse_std_spec(raw.redirects);
  if (!redirects) return tl::make_unexpected(std::move(redirects).error().within("--redirects"));
  config.logs.redirects = *std::move(redirects);
  auto tee = logs::parse_std_spec(raw.tee);
  if (!tee) return tl::make_unexpected(std::move(tee).error().within("--tee"));
  config.logs.tee = *std::move(tee);
  LOCKSTEP_TRY_ASSIGN(config.logs.prefix_template, prefix_template(raw, facts));
  warn_of_macros(config);
  LOCKSTEP_TRY_ASSIGN(config.logs.fold, fold(raw.fold));
  LOCKSTEP_TRY_ASSIGN(config.logs.filter, ranks_filter(raw.local_ranks_filter));
  warn_of_filter(config);
  if (raw.log_max_size) {
    LOCKSTEP_TRY_ASSIGN(config.logs.max_size, max_size(*raw.log_max_size));
  }
  config.logs.duplicate_stdout_filters = line_filters(raw.duplicate_stdout_filters);
  config.logs.duplicate_stderr_filters = line_filters(raw.duplicate_stderr_filters);
  return {};
}

}  // namespace lockstep::launch
