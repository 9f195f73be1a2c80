#include "rent/on_demand.h"

#include "base/text.h"
#include "cloud/kept_answer.h"
#include "cloud/key_pair.h"
#include "cloud/table/provider_table.h"
#include "cloud/user_data.h"
#include "io/file_lock.h"
#include "io/own_folders.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::int64_t kAccountPatienceMs = 60'000;
constexpr std::chrono::milliseconds kAccountPause{100};
constexpr std::int64_t kFreshMs = 20'000;  // a market older than this is asked for again

std::optional<std::string> env_of_process(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

cloud::Ground process_ground() {
  return {.env = env_of_process,
          .home = io::home_folder(),
          .cache = io::cache_folder(),
          .state = io::state_folder()};
}

Result<io::Fd> stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  // A signal that this process ignores, as SIGHUP under nohup, must not stop anything.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    if (!proc::is_ignored(number)) sigaddset(&set, number);
  io::Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_sys("signalfd", errno);
  return fd;
}

// Returns an epoll descriptor, readable when either of the two is.
Result<io::Fd> either_of(const io::Fd& one, const io::Fd& other) {
  io::Fd both(epoll_create1(EPOLL_CLOEXEC));
  for (const io::Fd* each : {&one, &other}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (!both || epoll_ctl(both.get(), EPOLL_CTL_ADD, each->get(), &event) != 0)
      return fail_sys("epoll", errno);
  }
  return both;
}

std::string new_intent() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t kSize = 20;
  std::random_device random;
  std::uniform_int_distribution<std::size_t> any(0, kLetters.size() - 1);
  std::string intent;
  while (intent.size() < kSize)
    intent += kLetters[any(random)];
  return intent;
}

}  // namespace

OnDemand::OnDemand(cloud::Ground ground) : ground_(std::move(ground)) {}
OnDemand::~OnDemand() = default;

Result<std::unique_ptr<OnDemand>> OnDemand::open() {
  auto made = std::unique_ptr<OnDemand>(new OnDemand(process_ground()));
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(made->ground_.state));
  made->journal_ = std::make_unique<cloud::Journal>(std::move(journal));
  LOCKSTEP_TRY_ASSIGN(made->ground_.owner, made->journal_->owner());
  made->providers_ = cloud::table::make_providers(made->ground_);
  LOCKSTEP_TRY_ASSIGN(made->signals_, stop_signals());
  made->guards_ = std::make_unique<GuardHosts>(made->ground_.owner, made->signals_.get());
  LOCKSTEP_TRY_ASSIGN(made->web_, cloud::open_web({.stop_fd = made->signals_.get()}));
  made->quit_ = io::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->quit_) return fail_sys("eventfd", errno);
  // Requests that terminate machines also end when stop_other() is called.
  LOCKSTEP_TRY_ASSIGN(made->ending_stops_, either_of(made->signals_, made->quit_));
  LOCKSTEP_TRY_ASSIGN(made->ending_, cloud::open_web({.stop_fd = made->ending_stops_.get()}));
  return made;
}

std::string OnDemand::used_file(const std::string& cluster) {
  return io::state_folder() + "/rentals/" + cluster + "/used";
}

std::string OnDemand::user_key_file(const std::string& cluster) {
  return io::state_folder() + "/rentals/" + cluster + "/user_key";
}

void OnDemand::note_use(const std::string& cluster) {
  const std::string path = used_file(cluster);
  const io::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) (void)futimens(file.get(), nullptr);
}

Status OnDemand::check_stopped() {
  if (const int stop = take_signal(); stop != 0)
    return Failure(Error{Errc::canceled, "stopped by the user", {}, stop});
  return {};
}

int OnDemand::take_signal() {
  int last = 0;
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    last = static_cast<int>(info.ssi_signo);
  return last;
}

void OnDemand::stop_other(bool stop) {
  eventfd_t many = 0;
  (void)(stop ? eventfd_write(quit_.get(), 1) : eventfd_read(quit_.get(), &many));
}

cloud::Provider* OnDemand::provider(std::string_view name) const {
  for (const auto& one : providers_)
    if (one->traits().name == name) return one.get();
  return nullptr;
}

Result<std::vector<cloud::Provider*>> OnDemand::with_keys(
    const std::vector<std::string>& names) const {
  std::vector<cloud::Provider*> found;
  for (const std::string& name : names) {
    cloud::Provider* one = provider(name);
    if (one == nullptr) {
      std::vector<std::string> known;
      for (const auto& each : providers_)
        known.emplace_back(each->traits().name);
      return fail(Errc::invalid_input,
                  fmt::format("no provider is called '{}'", printable(name, 40)),
                  "there are " + join(known, ", "));
    }
    if (auto keys = one->keys(); !keys) return Failure(std::move(keys).error());
    found.push_back(one);
  }
  if (!names.empty()) return found;
  found = keyed();
  if (!found.empty()) return found;
  std::string hint;
  for (const auto& one : providers_)
    hint += fmt::format("{}{}: {}", hint.empty() ? "" : "; ", one->traits().name,
                        one->traits().keys_hint);
  return fail(Errc::not_found, "no provider's keys were found, so nothing can be rented", hint);
}

std::vector<cloud::Provider*> OnDemand::keyed() const {
  std::vector<cloud::Provider*> found;
  for (const auto& one : providers_)
    if (one->keys()) found.push_back(one.get());
  return found;
}

Result<OnDemand::Market> OnDemand::ask(const cloud::Wish& wish, bool fresh,
                                       const Asking::Waiting& waiting, Sweep* beside) {
  LOCKSTEP_TRY_ASSIGN(const auto asked, with_keys(wish.providers));
  std::vector<cloud::OfferQuery> queries;
  for (const bool spot : {false, true}) {
    if (spot ? wish.spot == cloud::SpotWish::no : wish.spot == cloud::SpotWish::only) continue;
    queries.push_back({.gpu = wish.gpu, .spot = spot, .regions = wish.regions, .fresh = fresh});
  }
  std::vector<cloud::Catalog> catalogs(asked.size() * queries.size());
  std::vector<Asking::Job> jobs;
  for (std::size_t i = 0; i < catalogs.size(); ++i) {
    const cloud::OfferQuery& query = queries[i % queries.size()];
    cloud::Provider* provider = asked[i / queries.size()];
    if (query.spot && !provider->traits().has_spot) continue;
    jobs.push_back(
        {provider->traits().name, [&catalog = catalogs[i], provider, &query](cloud::Web& web) {
           catalog = provider->offers(web, query);
         }});
  }
  Market market;
  market.asked_ms = web_->now_ms();
  Asking(*web_, std::move(jobs)).wait(waiting);
  // All requests must be over before a signal is taken: each request looks for the signal itself.
  if (beside != nullptr) beside->wait();
  LOCKSTEP_TRY(check_stopped());
  for (cloud::Catalog& part : catalogs) {
    std::move(part.offers.begin(), part.offers.end(), std::back_inserter(market.catalog.offers));
    std::move(part.silent.begin(), part.silent.end(), std::back_inserter(market.catalog.silent));
  }
  // If the user named no provider, list those without credentials too: the user sees what was not
  // asked.
  if (!wish.providers.empty()) return market;
  for (const auto& one : providers_)
    if (auto keys = one->keys(); !keys)
      market.catalog.silent.push_back({.provider = std::string(one->traits().name),
                                       .why = keys.error().message,
                                       .no_keys = true});
  return market;
}

Result<cloud::Reconciled> OnDemand::settle(const std::vector<cloud::Rental>& before,
                                           const std::vector<cloud::Heard>& heard,
                                           cloud::Web& web) {
  std::vector<cloud::Provider*> asked;
  asked.reserve(heard.size());
  for (const cloud::Heard& one : heard)
    asked.push_back(one.provider);
  LOCKSTEP_TRY_ASSIGN(
      auto swept,
      cloud::reconcile({*journal_, web, asked, ground_.owner,
                        [this](const std::string& name) { return lock(name).has_value(); },
                        [this](const std::string& name) { unlock(name); }},
                       before, heard));
  for (const cloud::Rental& rental : swept.closed) {
    (void)leave_registry(rental.cluster);
    (void)guards_->tell(rental, GuardNewsKind::noting);
  }
  return swept;
}

Result<cloud::Reconciled> OnDemand::sweep(const Asking::Waiting& waiting) {
  LOCKSTEP_TRY_ASSIGN(const auto before, journal_->open_rentals());
  std::vector<cloud::Heard> heard;
  for (cloud::Provider* one : keyed())
    heard.push_back({.provider = one});
  Asking(*web_, lists_of(heard)).wait(waiting);
  LOCKSTEP_TRY(check_stopped());
  return settle(before, heard, *web_);
}

std::string OnDemand::folder_of(const std::string& cluster) const {
  return ground_.state + "/rentals/" + cluster;
}

Result<cloud::Rental> OnDemand::new_rental(const std::string& cluster, const cloud::Wish& wish,
                                           const cloud::Terms& terms) {
  LOCKSTEP_TRY(hosts::check_cluster_name(cluster));
  cloud::Rental rental{.id = new_intent(),
                       .cluster = cluster,
                       .owner = ground_.owner,
                       .wish = wish,
                       .terms = terms,
                       .created_ms = web_->now_ms()};
  if (rental.terms.allow_from.empty()) {
    LOCKSTEP_TRY_ASSIGN(rental.terms.allow_from, address_for(wish));
    rental.terms.own_address = !rental.terms.open_to_all();
  }
  LOCKSTEP_TRY(new_keys(rental));
  return rental;
}

Status OnDemand::new_keys(cloud::Rental& rental) {
  const std::string folder = folder_of(rental.cluster);
  // Make a new host key for each gang: the old one was in earlier user data.
  cloud::remove_key_pair(folder + "/host_key");
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair user,
                      cloud::keep_key_pair(folder + "/user_key", "lockstep"));
  LOCKSTEP_TRY_ASSIGN(const cloud::KeyPair host,
                      cloud::keep_key_pair(folder + "/host_key", "lockstep-host"));
  const cloud::FirstBoot boot{.host_key = host, .user_public_key = user.public_line};
  LOCKSTEP_TRY_ASSIGN(rental.user_data, cloud::cloud_config(boot));
  // Write one start script for all providers of containers: they all terminate containers in the
  // same way.
  for (const auto& one : providers_)
    if (const cloud::Traits& traits = one->traits(); traits.container) {
      LOCKSTEP_TRY_ASSIGN(rental.start_script, cloud::container_start(boot, traits.machine_ending));
    }
  rental.public_key = user.public_line;
  return {};
}

cloud::RentParts OnDemand::parts(const Tell& tell) {
  return parts_with(*web_, *ending_, tell);
}

cloud::RentParts OnDemand::parts_with(cloud::Web& web, cloud::Web& ending, const Tell& tell) {
  return {.journal = *journal_,
          .web = web,
          .ending = ending,
          .provider =
              [this](std::string_view name) {
                cloud::Provider* one = provider(name);
                return one != nullptr && one->keys() ? one : nullptr;
              },
          .tell = tell,
          .before_call =
              [this](const cloud::Rental& rental) {
                return guards_->tell(rental, GuardNewsKind::launching);
              },
          .hold_account = [this] { return hold_account(); }};
}

Status OnDemand::rent(cloud::Rental& rental, Market market, const cloud::RentRules& rules,
                      const Tell& tell, const TellStep& step) {
  bool first = true;
  const auto offers = [&]() -> cloud::Catalog {
    // Ask again if the user took long to decide, or if no provider was asked yet.
    const bool still_fresh = first && web_->now_ms() - market.asked_ms < kFreshMs;
    first = false;
    if (still_fresh) return std::move(market.catalog);
    auto again = ask(rental.wish, true);
    if (again) return std::move(again->catalog);
    return {.offers = {}, .silent = {{.provider = "", .why = again.error().message}}};
  };
  const auto judge = [&](cloud::Rental& at) -> cloud::Verdict {
    // Tell the guard that the client is at work. Otherwise the guard waits less long and then
    // terminates machines without first contact.
    (void)guards_->tell(at, GuardNewsKind::working);
    cloud::Verdict verdict = first_contact(at, step);
    if (verdict.kind != cloud::Verdict::Kind::good) return verdict;
    // Machines unknown to the guard must not be used.
    if (Status told = guards_->insist(at); !told)
      return {.kind = cloud::Verdict::Kind::stop, .error = std::move(told).error()};
    return verdict;
  };
  LOCKSTEP_TRY(take_name(rental));
  // A launch may leave a machine behind: the next sweep must ask the providers.
  cloud::drop_answer(ground_.cache, kCleanSweep);
  Status rented = cloud::Renting(parts(tell), rules).rent(rental, offers, judge);
  if (rented) return enter_registry(rental);
  // Remove the name, unless a machine may still exist.
  if (rental.settled()) (void)leave_registry(rental.cluster);
  return rented;
}

Status OnDemand::give_back(cloud::Rental& rental, const Tell& tell,
                           std::chrono::milliseconds patience) {
  // Terminate even if the guard is not reached: the guard asks the provider what is left.
  rental.wanted = false;
  (void)guards_->tell(rental, GuardNewsKind::working);
  cloud::RentRules rules;
  rules.end_patience = patience;
  const cloud::RentParts with = parts(tell);
  LOCKSTEP_TRY(cloud::RentedMachines(with, rules).give_back(rental));
  // Remove the keys last: they are needed as long as machines may exist.
  LOCKSTEP_TRY(leave_registry(rental.cluster));
  cloud::remove_key_pair(user_key_file(rental.cluster));
  cloud::remove_key_pair(folder_of(rental.cluster) + "/host_key");
  unlink(used_file(rental.cluster).c_str());
  rmdir(folder_of(rental.cluster).c_str());
  (void)guards_->tell(rental, GuardNewsKind::noting);
  return {};
}

Status OnDemand::drop_machines(cloud::Rental& rental, const std::string& why, const Tell& tell) {
  const cloud::RentParts with = parts(tell);
  LOCKSTEP_TRY(cloud::RentedMachines(with).end_all(rental, why));
  (void)guards_->tell(rental, GuardNewsKind::noting);
  return leave_registry(rental.cluster);
}

Status OnDemand::look(cloud::Rental& rental) {
  const cloud::RentParts with = parts({});
  return cloud::RentedMachines(with).look(rental);
}

Status OnDemand::look_only(cloud::Rental& rental) {
  return look_only(rental, *web_);
}

Status OnDemand::look_only(cloud::Rental& rental, cloud::Web& web) {
  const cloud::RentParts with = parts_with(web, web, {});
  return cloud::RentedMachines(with).look(rental, false);
}

cloud::Micros OnDemand::cost(const cloud::Rental& rental) const {
  return cloud::cost_so_far(rental, web_->now_ms());
}

Status OnDemand::lock(const std::string& cluster) {
  LOCKSTEP_TRY(io::make_folders(ground_.state + "/rentals"));
  const std::string path = ground_.state + "/rentals/" + cluster + ".lock";
  LOCKSTEP_TRY_ASSIGN(io::FileLock file, io::FileLock::open(path));
  if (!file.try_lock().value_or(false))
    return fail(Errc::unavailable,
                fmt::format("another lockstep is renting or giving back '{}'", cluster),
                "wait for it, or end it");
  locks_.emplace_back(cluster, std::move(file).release());
  return {};
}

Result<io::Fd> OnDemand::hold_account() {
  LOCKSTEP_TRY(io::make_folders(ground_.state));
  const std::string path = ground_.state + "/account.lock";
  LOCKSTEP_TRY_ASSIGN(io::FileLock file, io::FileLock::open(path));
  const std::int64_t until = web_->now_ms() + kAccountPatienceMs;
  // flock() cannot wait with a limit, and a blocking wait would not see the user's signal: try
  // again.
  while (!file.try_lock().value_or(false)) {
    if (web_->now_ms() >= until) return io::Fd();
    LOCKSTEP_TRY(web_->pause(kAccountPause));
  }
  return std::move(file).release();
}

void OnDemand::unlock(const std::string& cluster) {
  std::erase_if(locks_, [&](const auto& held) { return held.first == cluster; });
}

}  // namespace lockstep::rent
