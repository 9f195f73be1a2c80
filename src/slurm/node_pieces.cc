#include "slurm/node_pieces.h"

#include "base/text.h"

#include <algorithm>

namespace lockstep::slurm {
namespace {

// Slurm passes lines on in messages of 1024 bytes.
constexpr std::size_t kPiece = 500;
constexpr std::string_view kBehindLabel = ": ";
// A site's TaskProlog may print lines before the answer.
constexpr std::string_view kAnswerBegins = "\x01lockstep-answer";

}  // namespace

std::string print_pieces(std::string_view answer) {
  std::string lines = "\n";
  lines += kAnswerBegins;
  lines += '\n';
  for (; !answer.empty(); answer.remove_prefix(std::min(kPiece, answer.size()))) {
    lines += answer.substr(0, kPiece);
    lines += '\n';
  }
  return lines;
}

// A cut line comes as two lines, each with a label, so the line breaks have no meaning.
std::map<std::int64_t, std::string> join_pieces(std::string_view output,
                                                const PieceLimits& limits) {
  std::map<std::int64_t, std::string> answers;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    const std::size_t label = line.find(kBehindLabel);
    if (label == std::string_view::npos) continue;
    const auto task = parse_int(strip(line.substr(0, label)));
    if (!task || *task < 0 || *task >= static_cast<std::int64_t>(limits.tasks)) continue;
    std::string& answer = answers[*task];
    const std::string_view piece = line.substr(label + kBehindLabel.size());
    if (piece == kAnswerBegins)
      answer.clear();
    else if (answer.size() <= limits.bytes)
      answer += piece;
  }
  std::erase_if(answers, [&](const auto& each) { return each.second.size() > limits.bytes; });
  return answers;
}

}  // namespace lockstep::slurm
