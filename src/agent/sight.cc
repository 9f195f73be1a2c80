// Drives the looks at this node's workers: whom they look at, who judges them, the socket.
#include "agent/sight.h"

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"
#include "logs/capture.h"
#include "looks/hang_words.h"
#include "looks/thread_reader.h"
#include "store/init_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::agent {
namespace {

constexpr looks::Millis kPeriod{1000};
// A rank in state D for so long does not wait for a disk.
constexpr looks::Millis kStuck{3000};
constexpr std::size_t kMostEvidenceRanks = 64;
constexpr std::size_t kMostEvidence = 8UL << 20;
constexpr std::size_t kOutputLines = 20;  // of each stream
// A rank is often started through a shell. A longer chain of wrappers is something else.
constexpr int kMostWrappers = 3;

looks::VerdictRules rules_of(const launch::HangConfig& hang) {
  looks::VerdictRules rules{.period = kPeriod};
  if (hang.after == launch::HangConfig::After::given) rules.hang_after = hang.limit;
  if (hang.after == launch::HangConfig::After::never) rules.hang_after = looks::Millis(0);
  return rules;
}

// The pid of a process as the process itself sees it, in its own PID namespace. 0: not known.
std::uint32_t own_pid(pid_t pid) {
  const auto status = io::read_file(fmt::format("/proc/{}/status", pid), 8192);
  if (!status) return 0;
  const std::size_t at = status->find("\nNSpid:");
  if (at == std::string::npos) return 0;
  const std::string line = status->substr(at + 1, status->find('\n', at + 1) - at - 1);
  const auto own = parse_int(std::string(strip(line.substr(line.find_last_of("\t ") + 1))));
  return own && *own > 0 ? static_cast<std::uint32_t>(*own) : 0;
}

// Returns whether ranks meet each other.
bool meets(const looks::Fold& fold) {
  return std::any_of(fold.groups.begin(), fold.groups.end(), [](const looks::Group& group) {
    return group.activity.doing == looks::Doing::rendezvous;
  });
}

std::string recovered_words(int rank) {
  return fmt::format("rank {} no longer makes the others wait", rank);
}

std::string state_word(const looks::Verdict& verdict) {
  return std::string(looks::kVerdictStateWords[static_cast<std::size_t>(verdict.state)]);
}

// Returns whether a rank has stood still for half the time of a hang. Evidence of a hang needs the
// figures of GPUs, and the first ones take a moment.
bool may_hang(const looks::Fold& fold, looks::Millis limit) {
  if (limit.count() <= 0) return false;
  return std::any_of(fold.groups.begin(), fold.groups.end(), [&](const looks::Group& group) {
    return looks::is_alive(group) && 2 * std::max(group.quiet, group.same) >= limit;
  });
}

bool same(const looks::Looker::Target& a, const looks::Looker::Target& b) {
  return a.rank == b.rank && a.pid == b.pid;
}

}  // namespace

Sight::Sight(io::Loop& loop, const Node& node, GpuSight& gpus,
             std::function<std::vector<Target>()> workers,
             std::function<const store::Server*()> store, WorldSight::Way way, Listener& listener)
    : loop_(loop),
      node_(node),
      gpus_(gpus),
      workers_(std::move(workers)),
      store_(std::move(store)),
      listener_(listener),
      book_(node.name, kPeriod),
      judge_(rules_of(node.config.hang)),
      steps_(node.config.progress),
      looker_(
          loop, looks::ProcessReader(), [this](pid_t pid) { return stacks_.main_stack(pid); },
          [this](std::vector<looks::RankLook>& seen, io::TimePoint now) { on_look(seen, now); },
          {.period = kPeriod}),
      collectives_(loop),
      alarms_(collectives_, [this] { return evidence_text(); }),
      world_(std::move(way)) {}

void Sight::open(pid_t started, http::Handlers more) {
  status::JobSocketName name{.pid = started, .job = {}, .mark = random_suffix(8)};
  if (const auto id = node_.environment.find("LOCKSTEP_JOB_ID"); id != node_.environment.end())
    name.job = id->second;
  http::Handlers handlers = std::move(more);
  handlers["/why"] = [this](const http::Request& request) { return answer(request); };
  handlers["/ranks"] = [this](const http::Request& request) {
    looks::NodeRows all = rows_and_gpus(true);
    // A command that asks the agents of all nodes wants each rank once.
    if (request.query == "all")
      looks::add_ranks(all, world_.fold(fold_, io::Clock::now()), shown());
    return http::Response{200, "application/json", looks::rows_json(all)};
  };
  auto socket = status::JobSocket::open(loop_, name, std::move(handlers));
  if (!socket) return log::debug("no socket for commands: {}", socket.error().message);
  socket_ = std::move(*socket);
}

void Sight::close() {
  looker_.watch({});
  socket_.reset();
}

void Sight::attempt_started(const rendezvous::Round& round, std::int64_t attempt,
                            std::string folder, std::optional<RecorderFolder> recorder) {
  collectives_.attempt_started(std::move(recorder), round.world_size);
  alarms_.attempt_started({.number = static_cast<int>(attempt),
                           .round = static_cast<int>(round.number),
                           .folder = std::move(folder)});
  book_ = looks::LookBook(node_.name, kPeriod);
  judge_ = looks::Judge(rules_of(node_.config.hang));
  forget_stragglers();
  steps_.clear();
  redo_.attempt_started();
  stepping_.reset();
  timeout_.attempt_starts();
  attempt_ = attempt;
  round_ = round;
  seen_.clear();
  fold_ = {};
  whole_ = {};
  world_.begin(round.group_rank, round.group_world_size, round.world_size);
  aimed_.clear();
  aim();
}

void Sight::attempt_ends() {
  collectives_.attempt_ends();
  alarms_.attempt_ends();
  aimed_.clear();
  looker_.watch({});
  world_.end();
  seen_.clear();
  fold_ = {};
  whole_ = {};
  evidence_ = {};
  judge_ = looks::Judge(rules_of(node_.config.hang));
  forget_stragglers();
}

// Returns the process to look at for a worker: its own, or below a wrapper (`bash -c`) the only
// child that runs Python.
pid_t Sight::subject_of(const Target& worker) {
  pid_t subject = worker.pid;
  for (int step = 0; step < kMostWrappers; ++step) {
    if (stacks_.main_stack(subject)) return subject;
    const auto below = reader_.children_of(subject, 2, false);
    // Of several children, one may be a helper of the script, such as tensorboard.
    if (below.size() != 1) break;
    subject = below.front();
  }
  return worker.pid;
}

// Looks at other processes where wrappers have started them. Workers keep their pids for the whole
// attempt, so mostly nothing changes.
void Sight::aim() {
  std::vector<looks::Looker::Target> targets;
  for (const Target& worker : workers_()) {
    const auto known = std::find_if(seen_.begin(), seen_.end(), [&](const looks::RankLook& look) {
      // Below a wrapper, one program may follow another.
      const bool over = !look.process && (worker.pid == 0 || look.pid == worker.pid);
      // A rank may be unreadable for some looks, as while it forks its only loader.
      const bool is_python = look.process && look.was_read;
      return look.rank == worker.rank && (is_python || over);
    });
    pid_t pid = worker.pid;
    if (known != seen_.end())
      pid = known->pid;
    else if (!seen_.empty())  // before the first look, a wrapper has not started anything
      pid = subject_of(worker);
    targets.push_back({.rank = worker.rank, .pid = pid});
  }
  if (std::equal(targets.begin(), targets.end(), aimed_.begin(), aimed_.end(), same)) return;
  aimed_ = targets;
  looker_.watch(targets);
}

void Sight::on_look(std::vector<looks::RankLook>& seen, io::TimePoint now) {
  std::set<pid_t> pids;
  const std::vector<Target> workers = workers_();
  const std::set<int> writers = collectives_.take_writers();
  find_timeout(workers);
  for (looks::RankLook& look : seen) {
    look.dumps = writers.contains(look.rank);
    pids.insert(look.pid);
    for (const looks::ChildLook& child : look.children)
      pids.insert(child.pid);
    for (const Target& worker : workers)
      if (worker.rank == look.rank) {
        look.output_bytes = worker.output_bytes;
        look.output_age = worker.output_age;
      }
  }
  for (const Target& worker : workers)
    if (worker.pid != 0 && worker.output != nullptr)
      steps_.feed(worker.rank, worker.output->newest(now).line, now);
  stacks_.keep_only(pids);
  seen_ = seen;
  fold_ = book_.feed(seen_, now);
  gpus_.read_faults();
  judge(now);
  if (!aimed_.empty()) aim();
}

// Judges the ranks of this node, or of all nodes. A node that is judged by the leader tells the
// leader of its ranks, and claims nothing itself.
void Sight::judge(io::TimePoint now) {
  const bool is_judged = world_.is_judged();
  if (is_judged) world_.tell_own(fold_, own_facts(), now);
  whole_ = is_judged ? fold_ : world_.fold(fold_, now);
  evidence_ = {};
  if (!is_judged && meets(whole_)) ask_store(world_.pids(own_pids()));
  collectives_.heed(fold_, judge_.verdict().limit, now);
  collectives_.hear(world_.recorders(now));
  collectives_.add_to(evidence_);
  const looks::Verdict verdict = judge_.feed(
      whole_, {.world = round_.world_size, .unseen = world_.silence(now), .evidence = evidence_},
      now);
  if (may_hang(fold_, verdict.limit)) gpus_.ask();
  // First: to tell of a hang may end the attempt.
  listener_.on_look(fold_, shown(), redo());
  find_straggler(verdict, now);
  if (!is_judged) timeout_.hear(world_.timed_out());
  // A judged node, too: its ranks may end before the leader has answered.
  if (const auto rank = timeout_.rank()) alarms_.time_out(*rank, whole_, evidence_);
  if (is_judged) return alarms_.feed_judged(evidence_);
  const bool act = alarms_.feed({verdict, whole_, evidence_}, world_.hearing(), now);
  // Before anything ends: each node keeps its own evidence.
  if (world_.judges_all())
    world_.tell_verdict({.state = state(),
                         .words = words(now),
                         .alarms = alarms_.count(),
                         .alarm = alarms_.last(),
                         .timeout = alarms_.last_is_timeout(),
                         .fold = whole_,
                         .verdict = verdict,
                         .slow = slow_},
                        now);
  if (act && node_.config.hang.then != launch::HangConfig::Then::report)
    listener_.on_hang(looks::verdict_words(verdict));
}

// Returns whether the job repeats steps, by the lowest rank here that prints steps.
looks::Redo Sight::redo() {
  for (const looks::RankLook& look : seen_)
    if (!stepping_ && steps_.of(look.rank)) stepping_ = look.rank;
  return redo_.feed(stepping_ ? steps_.of(*stepping_) : std::nullopt);
}

void Sight::on_news(int from, const std::string& text) {
  if (!world_.hear(from, text, io::Clock::now())) return;
  collectives_.ask_now(fold_);
  alarms_.hear(world_.view().leader(), world_.view().news(), evidence_);
}

WorldSight::Pids Sight::own_pids() const {
  WorldSight::Pids pids;
  for (const looks::RankLook& look : seen_)
    if (look.process) pids[look.rank] = own_pid(look.pid);
  std::erase_if(pids, [](const auto& each) { return each.second == 0; });
  return pids;
}

// The store knows whose key the others wait for. A witness looks at every key, so it is taken only
// while ranks meet each other.
void Sight::ask_store(const WorldSight::Pids& pids) {
  const store::Server* store = store_();
  if (store == nullptr) return;
  std::vector<store::RankProcess> table;
  for (const auto& [rank, pid] : pids)
    table.push_back({.rank = rank, .pid = pid, .host = {}});
  const store::StoreFacts facts = store::read_witness(store->witness(), table, round_.world_size);
  if (facts.groups.empty()) return;
  evidence_.never_came = facts.groups.front().missing;
  evidence_.never_came_text = store::store_sentence(facts);
}

void Sight::find_timeout(const std::vector<Target>& workers) {
  if (const store::Server* store = store_()) timeout_.read(*store);
  for (const Target& worker : workers) {
    const auto before = std::find_if(seen_.begin(), seen_.end(),
                                     [&](const auto& look) { return look.rank == worker.rank; });
    const bool has_printed = before == seen_.end() || before->output_bytes != worker.output_bytes;
    if (has_printed && worker.output != nullptr) timeout_.read(worker.rank, *worker.output);
  }
}

void Sight::forget_stragglers() {
  straggler_ = {};
  world_straggler_ = {};
  slow_ = {};
}

std::string Sight::own_waits() const {
  const auto& late = straggler_.current();
  return looks::waits_text(book_.shares(), late ? std::optional(late->rank) : std::nullopt);
}

// Tells pids and GPUs only while the job starts, since they do not change later.
WorldSight::Own Sight::own_facts() const {
  WorldSight::Own own{
      .recorders = collectives_.told(), .waits = own_waits(), .timed_out = timeout_.rank()};
  if (!world_.job_starts() && !meets(fold_)) return own;
  own.pids = own_pids();
  own.gpus = gpus_.gpu_of();
  return own;
}

std::optional<int> Sight::gpu_of(int rank) const {
  const auto own = gpus_.gpu_of().find(rank);
  return own != gpus_.gpu_of().end() ? own->second : world_.gpu_of(rank);
}

// Looks for the straggler among all ranks, as the leader; hears of it, or looks among this node's
// ranks where the leader is torchrun or an older version.
void Sight::find_straggler(const looks::Verdict& verdict, io::TimePoint now) {
  const auto own = straggler_.feed(book_.shares(), verdict);
  if (own.forget) book_.clear_shares();
  if (const auto told = world_.slow()) return hear_straggler(*told);
  if (!world_.judges_all()) return tell_straggler(own, node_.name);
  const auto news = world_straggler_.feed(world_.waits(own_waits(), now), verdict, now);
  tell_straggler(news, news.begins ? std::string(looks::node_of(whole_, news.begins->rank)) : "");
}

void Sight::tell_straggler(const looks::StragglerWatch::News& news, const std::string& node) {
  if (news.ends) {
    log::warning("straggler: {}", recovered_words(*news.ends));
    end_straggler(*news.ends);
  }
  if (!news.begins) return;
  const looks::Straggler& found = *news.begins;
  const std::string name = looks::straggler_name(found.rank, node, gpu_of(found.rank));
  slow_ = {.rank = found.rank, .words = looks::straggler_words(found, name), .name = name};
  log::warning("straggler: {}", slow_.words);
  listener_.on_straggler(slow_);
}

// The leader has said so in its log.
void Sight::hear_straggler(const looks::WorldSlow& told) {
  if (told == slow_) return;
  if (slow_.rank >= 0) end_straggler(slow_.rank);
  slow_ = told;
  if (slow_.rank >= 0) listener_.on_straggler(slow_);
}

void Sight::end_straggler(int rank) {
  slow_ = {};
  listener_.on_straggler_over(rank, recovered_words(rank));
}

// Returns the GPUs and the stacks of all threads, for a file of evidence.
std::string Sight::evidence_text() {
  std::string text;
  for (const std::string& line : gpus_.lines())
    text += line + "\n";
  std::size_t ranks = 0;
  for (const looks::RankLook& look : seen_)
    if (look.process && ranks++ < kMostEvidenceRanks && text.size() < kMostEvidence) {
      looks::RankText rank =
          looks::rank_text(look, {.python = looks::python_stacks(reader_, stacks_, look, true)});
      looks::bound_threads(rank, kMostEvidence);
      text += "\n" + looks::threads_text(rank);
    }
  return text;
}

std::optional<int> Sight::stuck_rank() const {
  for (const looks::Group& group : fold_.groups)
    if (group.state == 'D' && group.quiet >= kStuck) return looks::ranks_of(group).front();
  return {};
}

std::vector<std::string> Sight::where_others_are(std::optional<int> failed) {
  std::vector<looks::RankLook> found;
  for (const looks::RankLook& look : seen_) {
    if (look.rank == failed || !look.process || !look.stack) continue;
    // A rank that is stuck in the kernel must not hold up the signals that follow.
    auto stack = looks::may_read_now(reader_, look) ? stacks_.main_stack(look.pid) : std::nullopt;
    // The failure may have ended other ranks already: gloo closes connections. Then the last look,
    // at most a second old, says more.
    if (!stack || stack->frames.empty()) stack = look.stack;
    found.push_back({.rank = look.rank, .pid = look.pid, .process = look.process});
    found.back().stack = std::move(stack);
  }
  std::vector<looks::Seen> seen;
  seen.reserve(found.size());
  for (const looks::RankLook& look : found)
    seen.push_back({&look, looks::what_doing(look), {}});
  std::vector<int> spared;
  if (failed) spared.push_back(*failed);
  return looks::group_sentences(looks::fold(node_.name, seen), spared);
}

// Returns the verdict in a line.
std::string Sight::words(io::TimePoint now) const {
  if (aimed_.empty()) return "no worker runs now";
  if (world_.is_judged()) return world_.view().words(now);
  std::string words = looks::verdict_words(judge_.verdict());
  const std::string silence = world_.silence(now);
  if (!silence.empty() && words.find(silence) == std::string::npos) words += "; " + silence;
  return words;
}

// Returns the verdict about the whole job, if this node knows it. Else that about its own ranks.
looks::Verdict Sight::shown() const {
  const auto told = world_.is_judged() ? world_.view().verdict() : std::nullopt;
  return told.value_or(judge_.verdict());
}

// Returns the state of the job: a word of looks::kVerdictStateWords.
std::string Sight::state() const {
  if (world_.is_judged() && world_.view().knows()) return world_.view().news().state;
  return state_word(judge_.verdict());
}

// A command may come before the first look of an attempt.
void Sight::look_once() {
  if (!seen_.empty() || aimed_.empty()) return;
  seen_ = looker_.look();
  fold_ = book_.feed(seen_, io::Clock::now());
}

looks::NodeRows Sight::rows() {
  look_once();
  const io::TimePoint now = io::Clock::now();
  looks::NodeRows rows{.node = node_.name,
                       .command = printable(node_.config.entrypoint),
                       .attempt = static_cast<int>(attempt_),
                       .world = round_.world_size,
                       .state = state(),
                       .words = words(now),
                       .rows = book_.rows(seen_, shown())};
  rows.straggler = slow_.words;
  for (looks::RankRow& row : rows.rows)
    if (const auto steps = steps_.of(row.rank)) {
      row.step = steps->step;
      row.steps_per_s = steps->per_s;
      row.step_guessed = steps->guessed;
    }
  for (const Target& worker : workers_()) {
    const auto row = std::find_if(rows.rows.begin(), rows.rows.end(),
                                  [&](const auto& each) { return each.rank == worker.rank; });
    if (row == rows.rows.end() || worker.output == nullptr) continue;
    const logs::Capture::Newest newest = worker.output->newest(now);
    row->last_line = printable(newest.line, looks::kMostLastLine);
    if (newest.age) row->output_age_ms = newest.age->count();
  }
  return rows;
}

looks::NodeLines Sight::nodes() const {
  if (!world_.judges_all() || aimed_.empty()) return {};
  const io::TimePoint now = io::Clock::now();
  looks::NodeLines nodes = looks::node_lines(world_.fold(fold_, now), judge_.verdict());
  nodes.silent = world_.silences(now);
  return nodes;
}

looks::NodeRows Sight::rows_and_gpus(bool ask) {
  if (ask) gpus_.ask();
  looks::NodeRows all = rows();
  gpus_.add_to(all);
  return all;
}

// A rank that has ended has no threads, but its last lines often say why.
void Sight::add_output(looks::Answer& answer, int rank, io::TimePoint now) const {
  for (const Target& worker : workers_()) {
    if (worker.rank != rank) continue;
    if (answer.ranks.empty() && worker.pid == 0)
      answer.ranks.push_back({.rank = rank, .doing = "ended"});
    if (answer.ranks.empty() || worker.output == nullptr) return;
    const std::string lines = worker.output->last_lines(kOutputLines, now);
    if (lines.empty()) return;
    for (const std::string& line : split(lines, '\n'))
      answer.ranks.front().output.push_back(printable(line, looks::kMostLastLine));
  }
}

http::Response Sight::answer(const http::Request& request) {
  look_once();
  const io::TimePoint now = io::Clock::now();
  const bool judged = world_.is_judged() && world_.view().knows();
  looks::Answer answer{.node = node_.name,
                       .command = printable(node_.config.entrypoint),
                       .attempt = static_cast<int>(attempt_),
                       .world = round_.world_size,
                       .state = state(),
                       .words = words(now),
                       .straggler = slow_.words,
                       .goodput = listener_.goodput(),
                       .fold = world_.fold(fold_, now),
                       .whole = !aimed_.empty() && (judged || world_.judges_all())};
  // The answers come a moment later: the next command shows them.
  collectives_.ask(fold_);
  answer.collectives = evidence_.sentences;
  if (!evidence_.never_came_text.empty()) answer.collectives.push_back(evidence_.never_came_text);
  answer.groups = looks::group_collectives(answer.fold, evidence_);
  gpus_.ask();
  answer.gpus = gpus_.lines();
  if (collectives_.asking())
    answer.collectives.emplace_back("flight recorders are being asked: ask again in a moment");
  for (const looks::RankLook& look : seen_)
    if (answer.refusal.empty() && look.process && !look.stack)
      answer.refusal = printable(std::string(stacks_.reason(look.pid)));
  const looks::Question question = looks::read_question(request.query);
  looks::read_threads(seen_, question, reader_, stacks_, answer);
  if (question.rank) add_output(answer, *question.rank, now);
  return {200, "application/json", looks::answer_json(answer)};
}

}  // namespace lockstep::agent
