#include "slurm/preflight.h"

#include "base/text.h"
#include "base/word_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace lockstep::slurm {
namespace {

// A temporary folder with less than this many MiB counts as full.
constexpr std::int64_t kFullMib = 64;
constexpr std::int64_t kSmallSharedMib = 512;  // DeepSpeed warns below this size
constexpr std::int64_t kClockOffMs = 2'000;
constexpr std::size_t kMostNames = 4;

using Names = std::vector<std::string>;

// "node1, node2, node3, node4 and 3 more"
std::string names_text(const Names& names) {
  return join_some(names, names.size() == kMostNames + 1 ? names.size() : kMostNames);
}

std::string minor_version(const std::string& version) {
  const auto parts = split(version, '.');
  return parts.size() < 2 ? version : parts[0] + "." + parts[1];
}

// Collects the findings. Each look_*() compares one aspect over all nodes.
class Look {
 public:
  Look(const Names& nodes, const AllFacts& facts) : nodes_(nodes), facts_(facts) {}

  std::vector<NodeFinding> take() {
    look_for_silence();
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!facts_[i]) continue;
      look_at_folders(static_cast<int>(i), *facts_[i]);
      look_at_gpus(static_cast<int>(i), *facts_[i]);
      if (!facts_[i]->port_trouble.empty())
        add(NodeWeight::doubt, static_cast<int>(i), facts_[i]->port_trouble);
      if (!facts_[i]->image_trouble.empty())
        add(NodeWeight::bad, static_cast<int>(i), facts_[i]->image_trouble,
            "see to it there, or give the image in another form");
    }
    look_at_python();
    look_at_pairs();
    look_at_clocks();
    return std::move(findings_);
  }

 private:
  void add(NodeWeight weight, int node, std::string text, std::string cure = {}) {
    findings_.push_back({weight, node, std::move(text), std::move(cure)});
  }

  bool told(int node) const { return facts_[static_cast<std::size_t>(node)].has_value(); }

  // Judges nodes without facts. A node is bad if at least half of the nodes that tried could not
  // connect. Otherwise the node may be late, and the agents wait.
  void look_for_silence() {
    for (int node = 0; node < static_cast<int>(facts_.size()); ++node) {
      if (told(node)) continue;
      Names cut;
      std::string why;
      int tried = 0;
      for (std::size_t i = 0; i < facts_.size(); ++i) {
        if (!facts_[i]) continue;
        const auto peers = peers_of(static_cast<int>(i), static_cast<int>(facts_.size()));
        if (std::find(peers.begin(), peers.end(), node) != peers.end()) ++tried;
        for (const Unreached& each : facts_[i]->unreached)
          // A refused connection proves that the machine is up.
          if (each.node == node && each.how == Unreached::How::cut) {
            cut.push_back(nodes_[i]);
            why = each.why;
          }
      }
      if (!cut.empty() && static_cast<int>(cut.size()) * 2 >= tried)
        add(NodeWeight::bad, node,
            fmt::format("cannot be reached from {}: {}", names_text(cut), why),
            "check the node's network, and whether the node is up");
      else
        add(NodeWeight::doubt, node, "no report came in the time for the pre-flight");
    }
  }

  void look_at_folders(int node, const NodeFacts& facts) {
    if (!facts.job.trouble.empty())
      add(NodeWeight::bad, node, "the job's folder can't be written to: " + facts.job.trouble,
          "see to the shared file system there");
    const FolderFacts& temp = facts.temp;
    if (!temp.trouble.empty())
      add(NodeWeight::bad, node, fmt::format("{} can't be written to: {}", temp.path, temp.trouble),
          "make room there, or set TMPDIR to another folder");
    else if (temp.free_mib >= 0 && temp.free_mib < kFullMib)
      add(NodeWeight::bad, node, fmt::format("{} has {} MiB left", temp.path, temp.free_mib),
          "make room there, or set TMPDIR to another folder");
    const FolderFacts& shared = facts.shared_memory;
    if (!shared.trouble.empty())
      add(NodeWeight::note, node,
          fmt::format("{} can't be written to: {}", shared.path, shared.trouble),
          "workers that share memory will die");
    else if (shared.total_mib >= 0 && std::min(shared.total_mib, shared.free_mib) < kSmallSharedMib)
      add(NodeWeight::note, node,
          fmt::format("{} has {} MiB, {} of them free: little for workers that share memory",
                      shared.path, shared.total_mib, shared.free_mib),
          "ask for it to be larger");
    if (facts.fabric && facts.gpus_given > 0 && facts.memlock_kib >= 0)
      add(NodeWeight::note, node,
          fmt::format("a process may lock {} KiB of memory, and NCCL over InfiniBand needs more",
                      facts.memlock_kib),
          "slurmd with LimitMEMLOCK=infinity and PropagateResourceLimitsExcept=MEMLOCK");
  }

  static int gpus_of(const NodeFacts& facts) {
    return facts.python.gpus >= 0 ? facts.python.gpus : facts.gpus_seen;
  }

  // Compares usable GPUs with the number given by Slurm. If no node sees any GPU, the kind of GPU
  // is unknown here, and nothing is wrong.
  void look_at_gpus(int node, const NodeFacts& facts) {
    const bool known = std::any_of(facts_.begin(), facts_.end(), [](const auto& each) {
      return each && (gpus_of(*each) > 0 || each->gpus_seen > 0);
    });
    const int usable = gpus_of(facts);
    if (known && usable < facts.gpus_given)
      add(NodeWeight::bad, node,
          fmt::format("{} of the {} GPUs that Slurm gave can be used", usable, facts.gpus_given),
          "see to its driver");
    if (!facts.gpu_users.empty())
      add(NodeWeight::doubt, node,
          fmt::format("GPUs of this job are in use by {}", names_text(facts.gpu_users)),
          "end the leftovers of an earlier job there");
  }

  // Returns the most frequent value. If two are equally frequent, an installed PyTorch wins over a
  // missing one, else the earlier node's value.
  template <class Value>
  std::string most_common(const std::vector<int>& among, const Value& value) const {
    std::map<std::string, int> counts;
    for (const int node : among)
      ++counts[value(node)];
    std::string best;
    int most = 0;
    for (const int node : among) {
      const std::string here = value(node);
      const int count = counts[here];
      if (count > most || (count == most && best.empty() && !here.empty())) {
        best = here;
        most = count;
      }
    }
    return best;
  }

  const PythonAnswer& python(int node) const {
    return facts_[static_cast<std::size_t>(node)]->python;
  }

  // Adds broken Pythons. A failure on all nodes is not the fault of a node, and the script's own
  // error will tell more.
  void add_broken(const std::vector<int>& asked, const std::vector<int>& broken) {
    const bool all = broken.size() == asked.size() && asked.size() > 1;
    for (const int node : broken)
      add(all ? NodeWeight::note : NodeWeight::bad, node, python(node).trouble,
          "install there the same as on the other nodes");
  }

  void look_at_python() {
    std::vector<int> asked;
    std::vector<int> started;
    std::vector<int> loaded;
    std::vector<int> broken;
    for (int node = 0; node < static_cast<int>(facts_.size()); ++node) {
      if (!told(node) || !python(node).asked) continue;
      const PythonAnswer& answer = python(node);
      asked.push_back(node);
      if (!answer.trouble.empty()) broken.push_back(node);
      if (!answer.version.empty()) started.push_back(node);
      if (answer.finished && answer.trouble.empty()) loaded.push_back(node);
      if (!answer.finished && answer.trouble.empty())
        add(answer.version.empty() ? NodeWeight::doubt : NodeWeight::note, node,
            answer.version.empty()
                ? answer.path + " has not started in the time for the pre-flight"
                : "PyTorch and the modules have not been imported in the time for the pre-flight");
      for (const std::string& module : answer.broken)
        add(NodeWeight::bad, node, "a module of the job does not load: " + module,
            "lockstep install puts the wheel there");
    }
    add_broken(asked, broken);
    compare(started, "Python", [this](int node) { return minor_version(python(node).version); });
    compare(loaded, "PyTorch", [this](int node) { return python(node).torch; });
  }

  template <class Value>
  void compare(const std::vector<int>& among, const char* what, const Value& value) {
    const std::string usual = most_common(among, value);
    for (const int node : among) {
      const std::string here = value(node);
      if (here == usual) continue;
      Names others;
      for (const int other : among)
        if (value(other) == usual) others.push_back(nodes_[static_cast<std::size_t>(other)]);
      const auto text = [&](const std::string& version) {
        return version.empty() ? fmt::format("no {}", what) : fmt::format("{} {}", what, version);
      };
      add(NodeWeight::bad, node,
          fmt::format("it has {} ({}), and {} {}", text(here), python(node).path,
                      names_text(others), (others.size() == 1 ? "has " : "have ") + text(usual)),
          "install the same there");
    }
  }

  // Finds the node at fault in pairs that do not reach each other: the node in most such pairs. Of
  // two equal ones the later, because the first node hosts the rendezvous. Repeat with the
  // remaining pairs.
  void look_at_pairs() {
    std::map<std::pair<int, int>, std::string> pairs;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!facts_[i]) continue;
      for (const Unreached& each : facts_[i]->unreached)
        if (told(each.node) && each.how != Unreached::How::other)
          pairs[std::minmax(static_cast<int>(i), each.node)] = each.why;
    }
    while (!pairs.empty()) {
      std::map<int, int> counts;
      for (const auto& [pair, why] : pairs) {
        ++counts[pair.first];
        ++counts[pair.second];
      }
      const int worst = std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) {
                          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
                        })->first;
      Names others;
      std::string why;
      for (auto pair = pairs.begin(); pair != pairs.end();) {
        const auto [one, two] = pair->first;
        if (one != worst && two != worst) {
          ++pair;
          continue;
        }
        others.push_back(nodes_[static_cast<std::size_t>(one == worst ? two : one)]);
        why = pair->second;
        pair = pairs.erase(pair);
      }
      add(NodeWeight::bad, worst,
          fmt::format("this node and {} do not reach each other: {}", names_text(others), why),
          "check the network between the nodes");
    }
  }

  void look_at_clocks() {
    // Each clock is compared with the deciding node's at arrival, and then with the median, because
    // the deciding node's own clock may be wrong.
    std::vector<std::int64_t> ahead;
    for (const auto& facts : facts_)
      if (facts) ahead.push_back(facts->clock_ms - facts->arrived_ms);
    if (ahead.size() < 2) return;
    std::vector<std::int64_t> sorted = ahead;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    std::size_t next = 0;
    for (int node = 0; node < static_cast<int>(facts_.size()); ++node) {
      if (!told(node)) continue;
      const std::int64_t off = ahead[next++] - *middle;
      if (std::abs(off) > kClockOffMs)
        add(NodeWeight::note, node,
            fmt::format("the clock is {:.1f} s {} the others'",
                        static_cast<double>(std::abs(off)) / 1000, off > 0 ? "ahead of" : "behind"),
            "have it set by NTP");
    }
  }

  const Names& nodes_;
  const AllFacts& facts_;
  std::vector<NodeFinding> findings_;
};

// Returns each node's worst finding, for which the node is excluded.
std::map<int, const NodeFinding*> worst_of(const std::vector<NodeFinding>& findings) {
  std::map<int, const NodeFinding*> worst;
  for (const NodeFinding& finding : findings) {
    if (finding.weight == NodeWeight::note) continue;
    const NodeFinding*& known = worst[finding.node];
    if (known == nullptr || known->weight < finding.weight) known = &finding;
  }
  return worst;
}

}  // namespace

std::vector<NodeFinding> node_findings(const std::vector<std::string>& nodes,
                                       const AllFacts& facts) {
  return Look(nodes, facts).take();
}

PreflightDecision decide(const std::vector<std::string>& nodes, const AllFacts& facts,
                         const NodeCounts& size) {
  const std::vector<NodeFinding> findings = node_findings(nodes, facts);
  const auto worst = worst_of(findings);
  int left = static_cast<int>(nodes.size());
  std::set<int> out;
  for (const auto& [node, finding] : worst)
    if (finding->weight == NodeWeight::bad) {
      out.insert(node);
      --left;
    }
  PreflightDecision decision;
  decision.ends = left < size.at_least;
  for (const auto& [node, finding] : worst)
    if (finding->weight == NodeWeight::doubt && left > size.wanted) {
      out.insert(node);
      --left;
    }
  std::vector<std::pair<std::string, Names>> lines;  // equal findings of several nodes share a line
  for (const NodeFinding& finding : findings) {
    const std::string& node = nodes[static_cast<std::size_t>(finding.node)];
    const auto found = worst.find(finding.node);
    const bool reason =
        found != worst.end() && found->second == &finding && out.contains(finding.node);
    if (reason)
      decision.left_out.push_back({node, finding.text, finding.weight == NodeWeight::bad});
    std::string line = finding.text;
    if (!finding.cure.empty()) line += "; " + finding.cure;
    if (reason && !decision.ends) line += "; the node is left out";
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& each) { return each.first == line; });
    if (same == lines.end())
      lines.emplace_back(std::move(line), Names{node});
    else
      same->second.push_back(node);
  }
  for (const auto& [line, of] : lines)
    decision.lines.push_back(names_text(of) + ": " + line);
  if (decision.ends)
    decision.lines.push_back(fmt::format(
        "{} of {} nodes are fit for the job, which needs {}: the job ends; exclude the bad "
        "nodes with -x, or ask for --spare nodes",
        left, nodes.size(), size.at_least));
  else if (left < size.wanted)
    decision.lines.push_back(
        fmt::format("the job goes on with {} nodes instead of {}", left, size.wanted));
  return decision;
}

std::vector<int> peers_of(int self, int count) {
  std::set<int> peers;
  if (count <= kAllPairs) {
    for (int node = 0; node < count; ++node)
      peers.insert(node);
  } else {
    for (int step = 1; step < count; step *= 2)
      peers.insert((self + step) % count);
    for (int node = 0; node < kDeciders; ++node)
      peers.insert(node);
  }
  peers.erase(self);
  return {peers.begin(), peers.end()};
}

bool may_decide(int self, int told, int count) {
  // Two halves of a split network must not both decide, so a majority is needed. For an exact half,
  // node 0's half counts.
  return self < kDeciders && (told * 2 > count || (self == 0 && told * 2 == count));
}

}  // namespace lockstep::slurm
