#include "cluster/sync_tree.h"

#include "base/text.h"
#include "cluster/piece_run.h"
#include "cluster/rsync_run.h"
#include "host/identity.h"
#include "sync/heavy.h"
#include "sync/offer.h"
#include "sync/rsync_command.h"
#include "sync/scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cluster {
namespace {

constexpr std::uint64_t kMuch = 500'000'000;
constexpr std::size_t kMostNamed = 3;
constexpr std::uint64_t kLittle = 8'000'000;
constexpr std::size_t kFew = 1000;

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

class ProjectSync {
 public:
  ProjectSync(const std::vector<HostPlace>& hosts, const Project& project,
              const SyncOptions& options)
      : places_(hosts),
        project_(project),
        options_(options),
        destination_(options.destination.empty() ? project.name : options.destination),
        owner_{host::hostname(), project.root} {}
  Result<SyncReport> run();

 private:
  Status ask();
  void take_answer(std::size_t index, const HostEnding& ending);
  Status send();
  void warn_of_much() const;
  struct Way {
    std::vector<Transfer> transfers;
    std::vector<std::size_t> whose;  // a transfer's place in report_.hosts
  };
  void take_ends(const Way& way, const std::vector<TransferEnd>& ends);
  void remark(const std::string& text) const {
    if (options_.remark) options_.remark(text);
  }

  const std::vector<HostPlace>& places_;
  const Project& project_;
  const SyncOptions& options_;
  sync::Manifest manifest_;
  SyncReport report_;
  const std::string destination_;
  const sync::Owner owner_;
  const bool has_rsync_ = sync::has_rsync();
  Way rsync_;
  Way pieces_;
};

Result<SyncReport> ProjectSync::run() {
  const auto began = std::chrono::steady_clock::now();
  LOCKSTEP_TRY_ASSIGN(sync::Scan found, sync::scan(project_.root));
  manifest_ = std::move(found.manifest);
  for (const std::string& text : found.remarks)
    remark(text);
  for (std::string& path : found.special)
    path = printable(path);
  if (!found.special.empty()) remark("not sent, as they are no files: " + some_of(found.special));
  report_.files = manifest_.size();
  report_.bytes = sync::bytes_of(manifest_);
  LOCKSTEP_TRY(ask());
  if (!options_.dry_run) LOCKSTEP_TRY(send());
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return std::move(report_);
}

Status ProjectSync::ask() {
  sync::Offer offer{.destination = destination_,
                    .owner = owner_,
                    .force = options_.force,
                    .dry_run = options_.dry_run,
                    .manifest = std::move(manifest_)};
  CommandRequest request;
  request.hosts = places_;
  request.own_binary = true;
  request.argv = {"host-tree", "offer"};
  request.input = CommandRequest::Input::given;
  request.given = {sync::encode_offer(offer)};
  request.output = CommandRequest::Output::keep;
  manifest_ = std::move(offer.manifest);
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command(request));
  for (std::size_t i = 0; i < endings.size(); ++i)
    take_answer(i, endings[i]);
  return {};
}

void ProjectSync::take_answer(std::size_t index, const HostEnding& ending) {
  const std::string& name = places_[index].name;
  HostSync& host = report_.hosts.emplace_back(HostSync{.name = name});
  if (!ending.error.empty()) {
    host.code = ending.code;
    host.error = ending.error;
    return;
  }
  auto answer = sync::parse_answer(ending.out, manifest_.size());
  if (!answer) {
    host.code = ending.code > 128 ? ending.code : 1;
    host.error = fmt::format("{}: {}", name, answer.error().message);
    host.hint = answer.error().hint;
    const std::string_view said = strip(ending.err);
    if (ending.out.empty() && !said.empty())
      host.error = fmt::format("{}: {}", name, printable(said));
    return;
  }
  host.place = answer->place;
  host.removed = answer->removed;
  host.edited = answer->edited;
  for (const std::string& text : answer->remarks)
    remark(fmt::format("{}: {}", name, text));
  if (!answer->kept.empty())
    remark(fmt::format("{}: gone here, but changed there since they were sent, so they stay: {}",
                       name, some_of(answer->kept)));
  if (answer->edited != 0)
    remark(fmt::format("{}: {} {} there since {} sent, {}", name, answer->edited,
                       answer->edited == 1 ? "file was changed" : "files were changed",
                       answer->edited == 1 ? "it was" : "they were",
                       options_.dry_run ? "and would be overwritten" : "and overwritten"));
  sync::Manifest needed = sync::pick(manifest_, answer->needed);
  host.files = needed.size();
  if (needed.empty()) return;
  if (options_.dry_run) host.bytes = sync::bytes_of(needed);
  // rsync takes longer to start than a little takes to send.
  const bool little = sync::bytes_of(needed) <= kLittle && needed.size() <= kFew;
  Way& way = little || !answer->rsync || !has_rsync_ ? pieces_ : rsync_;
  way.whose.push_back(index);
  way.transfers.push_back({places_[index], std::move(*answer), std::move(needed)});
}

void ProjectSync::warn_of_much() const {
  const Transfer* most = nullptr;
  std::uint64_t bytes = 0;
  for (const Way* way : {&rsync_, &pieces_})
    for (const Transfer& transfer : way->transfers)
      if (const std::uint64_t each = sync::bytes_of(transfer.needed); each > bytes) {
        most = &transfer;
        bytes = each;
      }
  if (bytes <= kMuch) return;
  std::vector<std::string> names;
  for (const sync::Heavy& each : sync::heaviest(most->needed, kMostNamed))
    names.push_back(fmt::format("{} ({})", printable(each.path), size_text(each.bytes)));
  remark(
      fmt::format("{} in {} files are to be sent, most of it in {}; .lockstepignore leaves "
                  "files out",
                  size_text(bytes), most->needed.size(), join(names, ", ")));
}

void ProjectSync::take_ends(const Way& way, const std::vector<TransferEnd>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    HostSync& host = report_.hosts[way.whose[i]];
    host.bytes = ends[i].bytes;
    host.error = ends[i].error;
    if (!host.error.empty()) host.code = ends[i].signal ? 128 + *ends[i].signal : 1;
  }
}

Status ProjectSync::send() {
  warn_of_much();
  std::uint64_t all = 0;
  for (const Way* way : {&rsync_, &pieces_})
    for (const Transfer& transfer : way->transfers)
      all += sync::bytes_of(transfer.needed);
  std::uint64_t before = 0;
  const TellTransfer tell = [&](std::size_t, std::uint64_t bytes) {
    if (options_.progress) options_.progress(before + bytes, all);
  };
  if (!pieces_.transfers.empty()) {
    std::vector<std::string> left_out;
    LOCKSTEP_TRY_ASSIGN(const auto ends, deliver(project_.root, destination_, owner_,
                                                 pieces_.transfers, tell, left_out));
    take_ends(pieces_, ends);
    for (const TransferEnd& end : ends)
      before += end.bytes;
    if (!left_out.empty())
      remark("changed while they were read, so the next sync sends them: " + some_of(left_out));
  }
  if (!rsync_.transfers.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto ends, run_transfers(project_.root, rsync_.transfers, tell));
    take_ends(rsync_, ends);
  }
  return {};
}

}  // namespace

Result<SyncReport> sync_project(const std::vector<HostPlace>& hosts, const Project& project,
                                const SyncOptions& options) {
  ProjectSync sync(hosts, project, options);
  return sync.run();
}

Result<HostSync> sync_back(const HostPlace& place, const Project& project, const std::string& path,
                           const SyncOptions& options) {
  const std::string& destination = options.destination.empty() ? project.name : options.destination;
  const TellTransfer tell = [&](std::size_t, std::uint64_t bytes) {
    if (options.progress) options.progress(bytes, 0);
  };
  LOCKSTEP_TRY_ASSIGN(Fetched fetched, fetch(place, project.root, destination, path, options.force,
                                             options.dry_run, tell));
  if (options.remark && !fetched.kept.empty())
    options.remark("newer here, or no file here, so they stay: " + some_of(fetched.kept));
  if (options.remark && !fetched.left_out.empty())
    options.remark("left there, as they are links that lead out or changed meanwhile: " +
                   some_of(fetched.left_out));
  return HostSync{.name = place.name,
                  .place = destination,
                  .files = fetched.files,
                  .bytes = fetched.bytes,
                  .code = fetched.code,
                  .error = fetched.error,
                  .hint = fetched.hint};
}

int code_of(const SyncReport& report) {
  for (const HostSync& host : report.hosts)
    if (host.code != 0) return host.code;
  return 0;
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit < 3; ++unit)
    value /= 1000;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string summary_of(const HostSync& host, bool dry_run) {
  if (host.files == 0 && host.removed == 0) return "nothing to do";
  std::string text = fmt::format("{} {}, {} {}", host.files, host.files == 1 ? "file" : "files",
                                 size_text(host.bytes), dry_run ? "to send" : "sent");
  if (host.removed != 0)
    text += fmt::format(", {} {}", host.removed, dry_run ? "to remove" : "removed");
  return text;
}

}  // namespace lockstep::cluster
