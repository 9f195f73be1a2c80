// A simulated world for tests of renting: machines with their bills, a clock, a disk that may be
// full or restored from an old copy, and a client that is killed or stopped at any step.
#pragma once

#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/rental.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cloud::testing {

struct Killed {};  // thrown where the client's process ends

struct SimMachine {
  std::string id;
  std::string provider;
  std::string intent;
  std::string owner;
  std::string token;
  std::string zone;
  int node = 0;
  Micros per_hour = 0;
  std::int64_t launched_ms = 0;
  std::int64_t listed_ms = 0;   // lists lack the machine until then
  std::int64_t running_ms = 0;  // pending until then
  std::int64_t lease_ms = 0;    // the machine must not live much longer
  std::int64_t ends_ms = 0;     // ends by itself: lease or failure; 0: never
  std::int64_t ended_ms = 0;
  std::int64_t minimum_s = 0;  // least billed time
  bool taken = false;
  bool unhealthy = false;
};

struct SimRules {
  double lose_answer = 0.1;  // of launches: carried out, but unanswered
  double lose_question = 0.05;
  double lose_end = 0.05;  // of terminations: lost, or unanswered
  double lose_list = 0.05;
  double silent_prepare = 0.02;
  double empty_zone = 0.3;
  double die_booting = 0.1;
  double taken = 0.2;       // of machines, after they ran
  double kill = 0.01;       // of steps
  double stop = 0.003;      // of steps: Ctrl-C
  double full = 0.01;       // of records: the disk is full for a while
  double burst = 0.005;     // of calls: a provider gives 503 for a while
  double others = 0.02;     // of calls: another lockstep reconciles meanwhile
  double restore = 0;       // of processes: an old journal was restored before
  bool sync = true;         // false: the newest record is lost with the process
  bool lock = true;         // false: two processes change one rental
  bool own_zone = true;     // false: the token of an unanswered launch is used in another zone
  bool tokens_told = true;  // false: lists lack the launch of a machine
  bool end_heard = true;    // false: a machine counts as gone once asked to end
};

class SimWorld {
 public:
  SimWorld(unsigned seed, const SimRules& with) : rules(with), random_(seed) {}

  bool chance(double part) {
    return part > 0 && std::uniform_real_distribution<>(0, 1)(random_) < part;
  }
  std::int64_t between(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  void step() {
    if (calm) return;
    if (chance(rules.kill)) throw Killed{};
    if (chance(rules.stop)) stopped = true;
  }
  // Lets another process work between any two answers.
  void meanwhile() {
    if (calm || !others || busy_ || !chance(rules.others)) return;
    busy_ = true;
    const bool was_stopped = std::exchange(stopped, false);
    others();
    stopped = was_stopped;
    busy_ = false;
  }
  void pass_time(std::int64_t ms) {
    now += ms;
    for (SimMachine& machine : machines)
      if (machine.ended_ms == 0 && machine.ends_ms != 0 && machine.ends_ms <= now)
        machine.ended_ms = machine.ends_ms;
  }
  bool busy() const { return busy_; }  // with another process
  // Returns whether a provider answers at all.
  bool answers(const std::string& provider) {
    std::int64_t& until = dead_until_[provider];
    if (!calm && chance(rules.burst)) until = now + between(1'000, 200'000);
    return now >= until;
  }
  bool disk_is_full() {
    if (!calm && chance(rules.full)) full_until_ = now + between(0, 20'000);
    return !calm && now < full_until_;
  }

  std::size_t alive(const std::string& intent = {}) const {
    return static_cast<std::size_t>(
        std::count_if(machines.begin(), machines.end(), [&](const SimMachine& machine) {
          return machine.ended_ms == 0 && (intent.empty() || machine.intent == intent);
        }));
  }
  Micros billed() const {
    Micros sum = 0;
    for (const SimMachine& machine : machines) {
      const std::int64_t end = machine.ended_ms == 0 ? now : machine.ended_ms;
      sum +=
          cost_of(machine.per_hour, std::max(end - machine.launched_ms, machine.minimum_s * 1000));
    }
    return sum;
  }

  SimRules rules;
  bool calm = false;  // no kills, and only answers still fail
  bool stopped = false;
  bool restored = false;  // the journal was restored, and some list is still missing
  std::function<void()> others;
  std::int64_t now = 1'800'000'000'000;
  std::vector<SimMachine> machines;
  std::size_t most_alive = 0;  // ever
  int intents = 0;
  std::map<std::string, Records::Record> disk;
  std::map<std::string, Records::Record> old_disk;
  std::set<std::string> locked;  // clusters

 private:
  std::mt19937 random_;
  std::map<std::string, std::int64_t> dead_until_;
  std::int64_t full_until_ = 0;
  bool busy_ = false;
};

// Records on the simulated disk. Without sync a killed process loses its last record.
class SimRecords : public Records {
 public:
  explicit SimRecords(SimWorld& world) : world_(world) {}

  Status put(const Record& record) override {
    world_.step();
    if (world_.disk_is_full()) return fail(Errc::exhausted, "database or disk is full");
    key_ = record.kind + " " + record.id;
    Record& place = world_.disk[key_];
    before_ = place;
    place = record;
    world_.step();
    return {};
  }
  // Undoes the last unsynced write, as a crash would.
  void crash() {
    if (world_.rules.sync || key_.empty()) return;
    if (before_.id.empty())
      world_.disk.erase(key_);
    else
      world_.disk[key_] = before_;
  }
  Status add(const Record& record) override {
    if (!world_.disk.contains(record.kind + " " + record.id)) return put(record);
    return {};
  }
  Status change(const Record& record) override {
    if (world_.disk.contains(record.kind + " " + record.id)) return put(record);
    return {};
  }
  Status drop(const std::string& kind, const std::string& id) override {
    world_.disk.erase(kind + " " + id);
    return {};
  }
  Result<std::vector<Record>> open_ones(const std::string& kind) override {
    return those([&](const Record& record) { return record.kind == kind && record.open; });
  }
  Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) override {
    return those([&](const Record& record) { return record.kind == kind && record.at_ms >= ms; });
  }
  Result<std::optional<Record>> newest(const std::string& kind, const std::string& part) override {
    const auto found = those([&](const Record& record) {
      return record.kind == kind && record.json.find(part) != std::string::npos;
    });
    const auto last = std::max_element(
        found.begin(), found.end(), [](const auto& a, const auto& b) { return a.at_ms < b.at_ms; });
    return last == found.end() ? std::nullopt : std::optional(*last);
  }

 private:
  template <class Wanted>
  std::vector<Record> those(Wanted wanted) const {
    std::vector<Record> found;
    for (const auto& [key, record] : world_.disk)
      if (wanted(record)) found.push_back(record);
    return found;
  }

  SimWorld& world_;
  Record before_;
  std::string key_;
};

// stoppable: reacts to the user's Ctrl-C.
class SimWeb : public Web {
 public:
  SimWeb(SimWorld& world, bool stoppable) : world_(world), stoppable_(stoppable) {}

  Reply ask(const Question& /*question*/) override {
    return {.answer = fail(Errc::internal, "nobody asks this one"), .sent = false};
  }
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override {
    for (const auto& job : jobs)
      job(*this);
  }
  std::int64_t now_ms() const override { return world_.now; }
  Status pause(std::chrono::milliseconds time) override {
    world_.step();
    if (stopped()) return fail(Errc::canceled, "stopped");
    world_.pass_time(time.count());
    if (time.count() > 0) world_.meanwhile();
    return {};
  }
  bool stopped() const { return stoppable_ && world_.stopped; }

 private:
  SimWorld& world_;
  bool stoppable_;
};

}  // namespace lockstep::cloud::testing
