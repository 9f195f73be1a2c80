#include "cli/sweep_run.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/remote_options.h"
#include "cli/run_options.h"
#include "codec/rdzv_endpoint.h"
#include "host/gpus.h"
#include "io/fd.h"
#include "io/replace_file.h"
#include "launch/raw_options.h"
#include "machine/lease_files.h"
#include "rows/row_book.h"
#include "rows/runner.h"
#include "rows/slots.h"

#include <fmt/core.h>

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

namespace lockstep::cli {
namespace {

// Options that a job on hosts gives to the whole part of a host, or whose value a row replaces.
constexpr std::array<std::string_view, 10> kNotOfRows = {
    "nnodes", "node-rank",    "rdzv-id", "rdzv-backend", "rdzv-endpoint",
    "report", "report-tails", "log-dir", "tee",          "log-line-prefix-template"};

// Variables that a row must not have, by the beginnings of their names: values of another row,
// and what torchrun's variables say about other nodes.
constexpr std::array<std::string_view, 8> kNotForRows = {
    "LOCKSTEP_SWEEP_", "LOCKSTEP_RDZV_TOKEN=", "PET_NNODES=",  "PET_NODE_RANK=",
    "PET_RDZV_",       "PET_MASTER_",          "PET_LOG_DIR=", "PET_TEE="};

// Returns the GPUs of this host, as CUDA_VISIBLE_DEVICES names them.
std::vector<std::string> gpus_here() {
  const host::GpuEnvironment env = host::gpu_environment();
  const auto found = host::visible_cuda_gpus("", env, {});
  const auto& given = env.cuda_visible_devices;
  std::vector<std::string> names;
  if (given && !strip(*given).empty()) names = split(*given, ',');
  // CUDA ignores all entries behind a bad entry.
  names.resize(std::min(names.size(), found.size()));
  for (std::size_t i = names.size(); i < found.size(); ++i)
    names.push_back(std::to_string(i));
  return names;
}

// A row is a job of one node. Only a job on hosts gives these options, for all of its hosts.
Status check_words(const launch::RawOptions& raw) {
  if (std::getenv(kSweepMark) != nullptr) return {};
  const char* given = raw.nnodes                   ? "--nnodes"
                      : raw.master_addr            ? "--master-addr"
                      : raw.master_port            ? "--master-port"
                      : raw.node_rank              ? "--node-rank"
                      : !raw.rdzv_endpoint.empty() ? "--rdzv-endpoint"
                                                   : nullptr;
  if (given == nullptr) return {};
  return fail(Errc::invalid_input,
              fmt::format("a row of a sweep runs on one node, so {} has no meaning", given),
              "leave it out; --on HOSTS spreads the rows over several hosts");
}

Result<rows::QueuePlace> queue_place(const launch::RawOptions& raw) {
  rows::QueuePlace place;
  place.nodes = static_cast<int>(parse_int(raw.nnodes.value_or("1")).value_or(1));
  if (place.nodes <= 1) return rows::QueuePlace();
  place.node = static_cast<int>(raw.node_rank.value_or(0));
  LOCKSTEP_TRY_ASSIGN(const auto endpoint, codec::parse_rdzv_endpoint(raw.rdzv_endpoint, 29400));
  place.host = endpoint.host;
  place.port = endpoint.port;
  const char* token = std::getenv("LOCKSTEP_RDZV_TOKEN");
  place.secret = token == nullptr ? "" : token;
  // A host that is not rented leaves at once, and its next queued job begins.
  place.stays = machine::lease_state().phase != machine::LeaseState::Phase::none;
  return place;
}

// Tells what --report names, behind links.
std::filesystem::file_status status_of(const std::string& report) {
  std::error_code ignored;
  return std::filesystem::status(report, ignored);
}

// Returns a folder for the records, and whether it is to be removed at the end. A report that goes
// into a FIFO or to a device has no folder beside it.
Result<std::pair<std::string, bool>> folder_of(const launch::RawOptions& raw) {
  if (raw.report && !std::filesystem::is_other(status_of(*raw.report)))
    return std::pair(std::filesystem::absolute(*raw.report).string() + ".rows", false);
  std::string folder = "/tmp/lockstep_rows_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return fail_sys(folder, errno);
  return std::pair(folder, true);
}

// Returns the words of a row's `lockstep run`.
std::vector<std::string> row_words(const Call& call, const launch::RawOptions& raw,
                                   const rows::Table& table, std::size_t row,
                                   const std::string& report) {
  Parsed parsed = call.parsed;
  for (std::string& word : parsed.script_args)
    word = rows::filled(word, table, row);
  std::vector<std::string_view> without = sweep_names();
  without.insert(without.end(), kNotOfRows.begin(), kNotOfRows.end());
  std::vector<std::string> words = {"run", "--report=" + report, "--tee=3",
                                    fmt::format("--log-line-prefix-template=[row{}]: ", row)};
  if (raw.log_dir && *raw.log_dir != "/dev/null")
    words.push_back(fmt::format("--log-dir={}/{}", *raw.log_dir, row));
  for (std::string& word : run_words(run_table(), parsed, without))
    words.push_back(std::move(word));
  return words;
}

// Returns the environment of all rows: this process's, without what is only for this process.
std::vector<std::string> row_environment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::none_of(kNotForRows.begin(), kNotForRows.end(),
                     [&](std::string_view name) { return text.starts_with(name); }))
      env.emplace_back(text);
  }
  return env;
}

rows::SlotRequest slot_request(const launch::RawOptions& raw, const SweepOptions& options,
                               const rows::QueuePlace& queue) {
  rows::SlotRequest wanted{.gpus = gpus_here(),
                           .gpus_per_job = options.gpus_per_job,
                           .workers = parse_int(raw.nproc_per_node).value_or(0),
                           .at_once = options.at_once,
                           .node = queue.node,
                           .nodes = queue.nodes};
  // "gpu" and its like are all GPUs of the host.
  if (wanted.workers < 1) wanted.workers = static_cast<std::int64_t>(wanted.gpus.size());
  return wanted;
}

// Writes --report of a sweep that a user runs here. A job on hosts has the rows' records instead.
void write_report(const launch::RawOptions& raw, const SweepRows& rows, const std::string& folder,
                  int code) {
  if (!raw.report || std::getenv(kSweepMark) != nullptr) return;
  constexpr std::size_t kMostBook = 64UL << 20;
  const auto records =
      rows::read_book(io::read_file(folder + "/rows.jsonl", kMostBook).value_or(""));
  const Status written = io::replace_file(
      *raw.report,
      codec::print_json(rows::report_json(rows.table, rows.chosen, records, code)) + "\n");
  if (!written) log::error("--report: {}", written.error().message);
}

}  // namespace

Status check_sweep(const Call& call, const SweepOptions& options) {
  const launch::RawOptions raw = raw_options(run_table(), call.parsed);
  LOCKSTEP_TRY(check_words(raw));
  LOCKSTEP_TRY(rows::slots_of(slot_request(raw, options, {})));
  return {};
}

Result<ExitCode> run_sweep(const Call& call, const SweepOptions& options, const SweepRows& rows) {
  const launch::RawOptions raw = raw_options(run_table(), call.parsed);
  LOCKSTEP_TRY(check_words(raw));
  rows::RunnerRequest request{.table = rows.table, .rows = rows.chosen};
  LOCKSTEP_TRY_ASSIGN(request.queue, queue_place(raw));
  LOCKSTEP_TRY_ASSIGN(request.slots, rows::slots_of(slot_request(raw, options, request.queue)));
  LOCKSTEP_TRY_ASSIGN(const auto folder, folder_of(raw));
  request.folder = folder.first;
  request.env = row_environment();
  if (raw.progress) {
    LOCKSTEP_TRY_ASSIGN(request.progress, logs::StepPattern::make(*raw.progress));
  }
  request.words = [&](std::size_t row, const std::string& report) {
    return row_words(call, raw, rows.table, row, report);
  };
  // A report of an earlier run must not speak for this one. A FIFO or a device stays.
  if (raw.report && std::filesystem::is_regular_file(status_of(*raw.report)))
    unlink(raw.report->c_str());
  // Nor must its record. A job on hosts goes on with the record, for `lockstep resume`.
  std::error_code ignored;
  if (std::getenv(kSweepMark) == nullptr)
    std::filesystem::remove(folder.first + "/rows.jsonl", ignored);
  const auto code = rows::run_rows(std::move(request));
  if (code) write_report(raw, rows, folder.first, *code);
  if (folder.second) std::filesystem::remove_all(folder.first, ignored);
  if (!code) return Failure(code.error());
  return passed_on(*code);
}

}  // namespace lockstep::cli
