#include "cluster/sync_tree.h"

#include "base/text.h"
#include "cluster/fan_out.h"
#include "cluster/fan_plan.h"
#include "cluster/piece_run.h"
#include "cluster/rsync_run.h"
#include "host/identity.h"
#include "io/loop.h"
#include "sync/heavy.h"
#include "sync/offer.h"
#include "sync/rsync_command.h"
#include "sync/scan.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::cluster {
namespace {

constexpr std::uint64_t kMuch = 500'000'000;
constexpr std::size_t kMostNamed = 3;
constexpr std::uint64_t kLittle = 8'000'000;
constexpr std::uint64_t kSmall = 100'000;  // of a file

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

std::string fan_words(const std::string& name, const std::string& seed, const std::string& why) {
  return fmt::format("{} gets its files from here and not from {}: {}", name, seed, why);
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
  Status look();
  Status ask();
  Status ask_again(const std::vector<std::size_t>& indexes);
  Result<std::vector<HostEnding>> offer_to(std::vector<HostPlace> places);
  std::optional<sync::Answer> read_answer(std::size_t index, const HostEnding& ending);
  void take_answer(std::size_t index, const HostEnding& ending);
  void choose_way(std::size_t index, sync::Answer answer);
  Status send();
  Status send_directly();
  Status open_fan();
  Status close_fan();
  void show(std::uint64_t bytes);
  void stop();
  void warn_of_much() const;
  struct Way {
    std::vector<Transfer> transfers;
    std::vector<std::size_t> whose;  // a transfer's place in report_.hosts
    void drop(std::size_t host);
  };
  void take_ends(const Way& way, const std::vector<TransferEnd>& ends);
  void remark(const std::string& text) const {
    if (options_.remark) options_.remark(text);
  }

  const std::vector<HostPlace>& places_;
  const Project& project_;
  const SyncOptions& options_;
  sync::Manifest manifest_;
  std::string offer_;
  SyncReport report_;
  const std::string destination_;
  const sync::Owner owner_;
  const bool has_rsync_ = sync::has_rsync();
  Way rsync_;
  Way pieces_;
  io::Loop loop_;
  std::optional<FanOut> fan_;
  FanPlan fan_plan_;
  std::set<std::size_t> awaited_;  // hosts that have not all that they need
  std::uint64_t all_ = 0;          // bytes that are to go to all hosts
  std::uint64_t before_ = 0;       // bytes that have gone, but for what is under way
  std::uint64_t direct_ = 0;       // bytes under way from here
  std::optional<int> stopped_;     // by a signal
};

Result<SyncReport> ProjectSync::run() {
  const auto began = std::chrono::steady_clock::now();
  LOCKSTEP_TRY(ask());
  if (!options_.dry_run) LOCKSTEP_TRY(send());
  report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return std::move(report_);
}

Status ProjectSync::look() {
  LOCKSTEP_TRY_ASSIGN(sync::Scan found, sync::scan(project_.root));
  for (const std::string& text : found.remarks)
    remark(text);
  for (std::string& path : found.special)
    path = printable(path);
  if (!found.special.empty()) remark("not sent, as they are no files: " + some_of(found.special));
  report_.files = found.manifest.size();
  report_.bytes = sync::bytes_of(found.manifest);
  sync::Offer offer{.destination = destination_,
                    .owner = owner_,
                    .force = options_.force,
                    .dry_run = options_.dry_run,
                    .manifest = std::move(found.manifest)};
  offer_ = sync::encode_offer(offer);
  manifest_ = std::move(offer.manifest);
  return {};
}

// The project is looked through while the hosts start. A host that gets no offer does nothing.
Result<std::vector<HostEnding>> ProjectSync::offer_to(std::vector<HostPlace> places) {
  Status looked;
  std::vector<bool> offered(places.size());
  CommandRequest request;
  request.hosts = std::move(places);
  request.own_binary = true;
  request.argv = {"host-tree", "offer"};
  request.output = CommandRequest::Output::keep;
  request.input = CommandRequest::Input::made;
  request.meanwhile = [&] {
    if (offer_.empty()) looked = look();
  };
  request.make_input = [&](std::size_t host) -> std::optional<std::string> {
    if (!looked || offered[host]) return std::nullopt;
    offered[host] = true;
    return offer_;
  };
  auto endings = run_command(loop_, request);
  LOCKSTEP_TRY(looked);
  return endings;
}

Status ProjectSync::ask() {
  LOCKSTEP_TRY_ASSIGN(const auto endings, offer_to(places_));
  for (std::size_t i = 0; i < endings.size(); ++i)
    take_answer(i, endings[i]);
  return {};
}

// Of hosts that have got a part of what they need meanwhile.
Status ProjectSync::ask_again(const std::vector<std::size_t>& indexes) {
  std::vector<HostPlace> places;
  places.reserve(indexes.size());
  for (const std::size_t index : indexes)
    places.push_back(places_[index]);
  LOCKSTEP_TRY_ASSIGN(const auto endings, offer_to(std::move(places)));
  for (std::size_t i = 0; i < endings.size(); ++i)
    if (auto answer = read_answer(indexes[i], endings[i]))
      choose_way(indexes[i], std::move(*answer));
  return {};
}

// nullopt: there is none, and the report says why.
std::optional<sync::Answer> ProjectSync::read_answer(std::size_t index, const HostEnding& ending) {
  const std::string& name = places_[index].name;
  HostSync& host = report_.hosts[index];
  if (!ending.error.empty()) {
    host.code = ending.code;
    host.error = ending.error;
    return std::nullopt;
  }
  auto answer = sync::parse_answer(ending.out, manifest_.size());
  if (answer) return std::move(*answer);
  host.code = ending.code > 128 ? ending.code : 1;
  host.error = fmt::format("{}: {}", name, answer.error().message);
  host.hint = answer.error().hint;
  const std::string_view said = strip(ending.err);
  if (ending.out.empty() && !said.empty())
    host.error = fmt::format("{}: {}", name, printable(said));
  return std::nullopt;
}

void ProjectSync::take_answer(std::size_t index, const HostEnding& ending) {
  const std::string& name = places_[index].name;
  HostSync& host = report_.hosts.emplace_back(HostSync{.name = name});
  auto answer = read_answer(index, ending);
  if (!answer) return;
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
  const sync::Manifest needed = sync::pick(manifest_, answer->needed);
  host.files = needed.size();
  if (options_.dry_run) host.bytes = sync::bytes_of(needed);
  choose_way(index, std::move(*answer));
}

void ProjectSync::choose_way(std::size_t index, sync::Answer answer) {
  sync::Manifest needed = sync::pick(manifest_, answer.needed);
  if (needed.empty()) return;
  // rsync takes longer to start than a little takes to send, and asks more of small files than it
  // saves by sending only what has changed in them.
  const std::uint64_t bytes = sync::bytes_of(needed);
  const bool little = bytes <= std::max(kLittle, needed.size() * kSmall);
  Way& way = little || !answer.rsync || !has_rsync_ ? pieces_ : rsync_;
  way.whose.push_back(index);
  way.transfers.push_back({places_[index], std::move(answer), std::move(needed)});
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

void ProjectSync::Way::drop(std::size_t host) {
  for (std::size_t i = whose.size(); i-- > 0;) {
    if (whose[i] != host) continue;
    whose.erase(whose.begin() + static_cast<std::ptrdiff_t>(i));
    transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ProjectSync::take_ends(const Way& way, const std::vector<TransferEnd>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    HostSync& host = report_.hosts[way.whose[i]];
    host.bytes += ends[i].bytes;
    before_ += ends[i].bytes;
    host.error = ends[i].error;
    if (!host.error.empty()) host.code = ends[i].signal ? 128 + *ends[i].signal : 1;
    if (host.error.empty()) awaited_.erase(way.whose[i]);
    // Any other one is of the host's own process.
    const int signal = ends[i].signal.value_or(0);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
      stopped_ = signal;
  }
  direct_ = 0;
}

void ProjectSync::show(std::uint64_t bytes) {
  direct_ = bytes;
  const std::uint64_t done = before_ + direct_ + (fan_ ? fan_->bytes() : 0);
  if (options_.progress) options_.progress(std::min(done, all_), all_);
}

Status ProjectSync::send() {
  warn_of_much();
  for (const Way* way : {&rsync_, &pieces_}) {
    for (const Transfer& transfer : way->transfers)
      all_ += sync::bytes_of(transfer.needed);
    awaited_.insert(way->whose.begin(), way->whose.end());
  }
  LOCKSTEP_TRY(open_fan());
  if (!stopped_) LOCKSTEP_TRY(send_directly());
  if (fan_ && !stopped_) LOCKSTEP_TRY(close_fan());
  if (stopped_) stop();
  return {};
}

Status ProjectSync::send_directly() {
  const TellTransfer tell = [this](std::size_t, std::uint64_t bytes) { show(bytes); };
  if (!pieces_.transfers.empty()) {
    std::vector<std::string> left_out;
    LOCKSTEP_TRY_ASSIGN(const auto ends, deliver(loop_, project_.root, destination_, owner_,
                                                 pieces_.transfers, tell, left_out));
    take_ends(pieces_, ends);
    if (!left_out.empty())
      remark("changed while they were read, so the next sync sends them: " + some_of(left_out));
  }
  if (!rsync_.transfers.empty() && !stopped_) {
    LOCKSTEP_TRY_ASSIGN(const auto ends,
                        run_transfers(loop_, project_.root, rsync_.transfers, tell));
    take_ends(rsync_, ends);
  }
  pieces_ = {};
  rsync_ = {};
  return {};
}

// Much that goes to several hosts goes to one of them from here, and from there to the others.
Status ProjectSync::open_fan() {
  std::vector<FanNeed> needs(places_.size());
  for (const Way* way : {&rsync_, &pieces_})
    for (std::size_t i = 0; i < way->whose.size(); ++i)
      needs[way->whose[i]] = {sync::bytes_of(way->transfers[i].needed),
                              places_[way->whose[i]].here};
  auto plan = plan_fan(needs);
  if (!plan) return {};
  fan_plan_ = std::move(*plan);
  FanSettings settings{places_[fan_plan_.seed], {}, destination_, owner_};
  for (const std::size_t taker : fan_plan_.takers)
    settings.takers.push_back(places_[taker]);
  fan_.emplace(loop_, std::move(settings), [this] { show(direct_); });
  if (Status opened = fan_->open(); !opened) {
    if (opened.error().code != Errc::canceled) return opened;
    stopped_ = opened.error().sys;
  }
  for (std::size_t i = 0; i < fan_plan_.takers.size() && !stopped_; ++i) {
    const FanOut::Taker& taker = fan_->takers()[i];
    const std::size_t host = fan_plan_.takers[i];
    if (!taker.connected) {
      remark(fan_words(places_[host].name, places_[fan_plan_.seed].name, taker.trouble));
      continue;
    }
    for (Way* way : {&rsync_, &pieces_})
      way->drop(host);
  }
  return {};
}

// Whoever has not got all of it from the seed gets the rest from here.
Status ProjectSync::close_fan() {
  fan_->seed_is_done();
  if (Status finished = fan_->finish(); !finished) {
    if (finished.error().code != Errc::canceled) return finished;
    stopped_ = finished.error().sys;
  }
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < fan_plan_.takers.size(); ++i) {
    const FanOut::Taker& taker = fan_->takers()[i];
    if (!taker.connected) continue;
    const std::size_t index = fan_plan_.takers[i];
    const std::string& seed = places_[fan_plan_.seed].name;
    report_.hosts[index].bytes += taker.bytes;
    if (taker.over && taker.trouble.empty()) {
      report_.hosts[index].from = seed;
      awaited_.erase(index);
    } else if (!stopped_) {
      remark(fan_words(places_[index].name, seed, taker.trouble));
      again.push_back(index);
    }
  }
  before_ += fan_->bytes();
  fan_.reset();
  if (again.empty() || stopped_) return {};
  LOCKSTEP_TRY(ask_again(again));
  return send_directly();
}

// By a signal: hosts that have not all of it are told so.
void ProjectSync::stop() {
  fan_.reset();
  for (const std::size_t index : awaited_) {
    HostSync& host = report_.hosts[index];
    if (!host.error.empty()) continue;
    host.code = 128 + *stopped_;
    host.error = host.name + ": the transfer was stopped; the next sync goes on";
  }
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

}  // namespace lockstep::cluster
