// lockstep sync: brings a project's files to hosts, or files back from one host.
#include "cli/places.h"
#include "cli/project_words.h"
#include "cli/subcommand.h"
#include "cli/sync_options.h"
#include "cli/transfer_bar.h"
#include "codec/json.h"
#include "hosts/place.h"
#include "project/sync_tree.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

nlohmann::ordered_json json_of(const project::SyncReport& report) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const project::HostSync& host : report.hosts) {
    nlohmann::ordered_json each{{"name", host.name},    {"code", host.code},
                                {"place", host.place},  {"files", host.files},
                                {"bytes", host.bytes},  {"removed", host.removed},
                                {"edited", host.edited}};
    if (!host.from.empty()) each["from"] = host.from;
    if (!host.error.empty()) each["error"] = host.error;
    hosts.push_back(std::move(each));
  }
  return {{"files", report.files},
          {"bytes", report.bytes},
          {"seconds", report.seconds},
          {"hosts", std::move(hosts)}};
}

std::string summary_of_back(const project::HostSync& host, bool dry_run) {
  if (host.files == 0) return "nothing to do";
  return fmt::format("{} {}, {} {}", host.files, host.files == 1 ? "file" : "files",
                     project::size_text(host.bytes), dry_run ? "to bring back" : "brought back");
}

// Prints results to stdout and errors to stderr, so that --json stays one document.
void print_report(const project::SyncReport& report, const SyncCommandOptions& options) {
  if (options.json) std::puts(codec::print_json(json_of(report)).c_str());
  for (const project::HostSync& host : report.hosts) {
    if (!host.error.empty())
      print_error(sync_table().program, {Errc::unavailable, host.error, host.hint, 0});
    else if (!options.json)
      std::puts(fmt::format("{}: {}, {:.2f} s", host.name,
                            options.back ? summary_of_back(host, options.dry_run)
                                         : project::summary_of(host, options.dry_run),
                            report.seconds)
                    .c_str());
  }
}

Result<std::vector<hosts::HostPlace>> places_of(const SyncCommandOptions& options) {
  PlaceOptions where = options.places;
  // --back takes files from one node.
  if (options.back && !where.nodes) where.nodes = "0";
  LOCKSTEP_TRY_ASSIGN(auto places, places_of(options.where, where));
  if (options.back && places.size() != 1)
    return fail(Errc::invalid_input,
                fmt::format("--nodes {} names several nodes, and --back takes a single node",
                            *where.nodes));
  return places;
}

// Returns a report about one host, like sync_project().
Result<project::SyncReport> bring_back(const hosts::HostPlace& place,
                                       const project::Project& project, const std::string& path,
                                       const project::SyncOptions& settings) {
  const auto began = std::chrono::steady_clock::now();
  LOCKSTEP_TRY_ASSIGN(const std::string below, project::path_in_project(project, path));
  LOCKSTEP_TRY_ASSIGN(project::HostSync host, project::sync_back(place, project, below, settings));
  project::SyncReport report{.files = host.files, .bytes = host.bytes, .hosts = {}};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  report.hosts.push_back(std::move(host));
  return report;
}

Result<project::SyncReport> sync_all(const SyncCommandOptions& options) {
  LOCKSTEP_TRY_ASSIGN(const auto places, places_of(options));
  LOCKSTEP_TRY_ASSIGN(const project::Project project, project_of(".", options.project));
  TransferBar progress(!options.json);
  project::SyncOptions settings;
  settings.force = options.force;
  settings.dry_run = options.dry_run;
  settings.remark = [&progress](const std::string& text) {
    // The bar has no line end: a message would continue the bar's line.
    progress.clear();
    std::fputs(fmt::format("{}: warning: {}\n", sync_table().program, text).c_str(), stderr);
  };
  settings.progress = [&progress](std::uint64_t bytes, std::uint64_t of) {
    progress.draw(bytes, of);
  };
  if (options.back) return bring_back(places.front(), project, *options.back, settings);
  return project::sync_project(places, project, settings);
}

Result<ExitCode> sync_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const SyncCommandOptions options, sync_options(call.parsed));
  LOCKSTEP_TRY_ASSIGN(const project::SyncReport report, sync_all(options));
  print_report(report, options);
  return passed_on(project::code_of(report));
}

}  // namespace

extern constinit const Subcommand kSync{.name = "sync",
                                        .summary = "bring a project's files to hosts",
                                        .table = sync_table,
                                        .run = sync_command,
                                        .signals = Signals::blocked};

}  // namespace lockstep::cli
