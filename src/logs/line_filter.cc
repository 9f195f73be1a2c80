// Judges lines for filtered_*.log.
#include "logs/line_filter.h"

#include "logs/line_ends.h"

#include <algorithm>
#include <cstring>

namespace lockstep::logs {

void LineFilter::feed(std::string_view chunk, ByteQueue& to) {
  // The chunk before ended in '\r'. A '\n' now belongs to the same line end.
  if (after_cr_ && !chunk.empty()) {
    after_cr_ = false;
    if (chunk.front() == '\n') chunk.remove_prefix(1);
  }
  LineEnds ends(chunk);
  while (!chunk.empty()) {
    const auto stop = static_cast<std::size_t>(ends.next(chunk.data()) - chunk.data());
    if (stop == chunk.size()) {
      add(chunk, to);
      return;
    }
    if (held_.empty() && verdict_ == Verdict::open && stop <= kJudged) {
      // The usual case: a line inside the chunk is judged without a copy.
      judge(chunk.substr(0, stop), to);
    } else {
      add(chunk.substr(0, stop), to);
    }
    end_line(to);
    std::size_t next = stop + 1;
    if (chunk[stop] == '\r') {
      after_cr_ = next == chunk.size();
      if (!after_cr_ && chunk[next] == '\n') ++next;
    }
    chunk.remove_prefix(next);
  }
}

void LineFilter::finish(ByteQueue& to) {
  if (verdict_ == Verdict::open && !held_.empty()) judge(held_, to);
  held_.clear();
  verdict_ = Verdict::open;
}

void LineFilter::add(std::string_view part, ByteQueue& to) {
  if (verdict_ == Verdict::open) {
    // Hold a line back only until kJudged bytes are known.
    const std::size_t room = std::min(kJudged - held_.size(), part.size());
    held_.append(part.substr(0, room));
    part.remove_prefix(room);
    if (held_.size() < kJudged) return;
    judge(held_, to);
    held_.clear();
  }
  if (verdict_ == Verdict::picked) to.append(part);
}

void LineFilter::end_line(ByteQueue& to) {
  if (verdict_ == Verdict::open) judge(held_, to);
  held_.clear();
  if (verdict_ == Verdict::picked) to.append("\n");
  verdict_ = Verdict::open;
}

void LineFilter::judge(std::string_view line, ByteQueue& to) {
  const bool picked = std::any_of(wanted_.begin(), wanted_.end(), [line](const std::string& text) {
    return memmem(line.data(), line.size(), text.data(), text.size()) != nullptr || text.empty();
  });
  verdict_ = picked ? Verdict::picked : Verdict::passed_over;
  if (!picked) return;
  to.append(prefix_);
  to.append(line);
}

}  // namespace lockstep::logs
