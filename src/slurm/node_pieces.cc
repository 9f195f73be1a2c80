#include "slurm/node_pieces.h"

#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace lockstep::slurm {
namespace {

// Slurm passes lines on in messages of 1024 bytes.
constexpr std::size_t kPiece = 500;
constexpr std::string_view kBehindLabel = ": ";

}  // namespace

std::string print_pieces(std::string_view answer) {
  std::string lines;
  for (; !answer.empty(); answer.remove_prefix(std::min(kPiece, answer.size()))) {
    lines += answer.substr(0, kPiece);
    lines += '\n';
  }
  return lines;
}

// A cut line comes as two lines, each with a label, so the line breaks have no meaning.
std::vector<std::string> join_pieces(std::string_view output, const PieceLimits& limits) {
  std::map<std::int64_t, std::string> answers;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    const std::size_t label = line.find(kBehindLabel);
    if (label == std::string_view::npos) continue;
    const auto task = parse_int(strip(line.substr(0, label)));
    if (!task || *task < 0 || *task >= static_cast<std::int64_t>(limits.tasks)) continue;
    std::string& answer = answers[*task];
    if (answer.size() <= limits.bytes) answer += line.substr(label + kBehindLabel.size());
  }
  std::vector<std::string> all;
  all.reserve(answers.size());
  for (auto& [task, answer] : answers)
    if (answer.size() <= limits.bytes) all.push_back(std::move(answer));
  return all;
}

}  // namespace lockstep::slurm
