#include "top/screen.h"

#include "base/text.h"
#include "top/rank_page.h"
#include "top/table.h"
#include "top/text_width.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::top {
namespace {

// A filter is typed by hand. Pasted text must not grow without end.
constexpr std::size_t kMostFilter = 64;
// Of the lines above the table: what the nodes say about the job.
constexpr std::size_t kMostWords = 4;

Style style_of(std::string_view state) {
  if (state == "hung" || state == "gone") return Style::alarm;
  if (state == "stopped" || state == "waiting") return Style::attention;
  return Style::plain;
}

// "job train (3f0a9c1e) on gpus: train.py, attempt 1, 8 of 8 ranks".
std::string title_of(const JobRows& job) {
  if (job.id.empty()) return "lockstep top";  // nothing is known before the first answer
  std::string text = fmt::format("job {} on {}", job.id, job.place);
  if (job.nodes.empty()) return text;
  const looks::NodeRows& first = job.nodes.front();
  const std::string script = first.command.substr(first.command.rfind('/') + 1);
  const std::size_t count = count_ranks(job);
  return text + fmt::format(": {}, attempt {}, {} of {} ranks", script, first.attempt, count,
                            std::max(static_cast<std::size_t>(first.world), count));
}

// The words of the nodes about the job. Equal words of several nodes are one line.
void add_words(const JobRows& job, std::vector<ScreenLine>& lines) {
  std::vector<ScreenLine> said;
  const auto say = [&said](const std::string& text, Style style) {
    const bool known = std::any_of(said.begin(), said.end(),
                                   [&](const ScreenLine& line) { return line.text == text; });
    if (!known) said.push_back({text, style});
  };
  for (const looks::NodeRows& node : job.nodes)
    if (!node.words.empty()) say(node.words, style_of(node.state));
  for (const looks::NodeRows& node : job.nodes)
    if (!node.straggler.empty()) say("straggler: " + node.straggler, Style::attention);
  // A large job in trouble has a sentence from every node.
  const std::size_t more = said.size() > kMostWords ? said.size() - kMostWords : 0;
  said.resize(said.size() - more);
  if (more > 0) said.push_back({fmt::format("and {} more lines", more), Style::faint});
  lines.insert(lines.end(), said.begin(), said.end());
}

std::vector<ScreenLine> cut_lines(std::vector<ScreenLine> lines, std::size_t columns) {
  for (ScreenLine& line : lines)
    line.text = std::string(cut_to(line.text, columns));
  return lines;
}

void remove_last_character(std::string& text) {
  // A UTF-8 character goes as a whole: first its continuation bytes, then its lead byte.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text.pop_back();
  if (!text.empty()) text.pop_back();
}

std::vector<ScreenLine> table_lines(const std::vector<Line>& lines, std::size_t columns) {
  const TableText table = table_of(lines, columns);
  std::vector<ScreenLine> all = {{table.head, Style::head}};
  for (std::size_t i = 0; i < lines.size(); ++i)
    all.push_back({table.lines[i], style_of(lines[i].row.state)});
  return all;
}

}  // namespace

void Screen::take(JobRows job) {
  job_ = std::move(job);
  lines_ = lines_of(job_, rules_);
  note_.clear();
}

void Screen::take_threads(int rank, std::string text) {
  // The user may have left the page, or chosen another rank, while the answer was on its way.
  if (shown_rank_ == rank) threads_ = std::move(text);
}

// The line with the chosen rank, or the nearest one before it.
std::size_t Screen::chosen_line() const {
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (std::binary_search(lines_[i].ranks.begin(), lines_[i].ranks.end(), chosen_)) return i;
  return 0;
}

void Screen::move(std::ptrdiff_t by) {
  const auto step = [by](std::size_t from, std::size_t count) {
    if (count == 0) return std::size_t{0};
    const auto to = static_cast<std::ptrdiff_t>(from) + by;
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(to, 0, static_cast<std::ptrdiff_t>(count) - 1));
  };
  if (shown_rank_) {
    first_ = step(first_, body().size());
    return;
  }
  if (lines_.empty()) return;
  // Keep a rank, not a line number: each look may group the ranks into other lines.
  chosen_ = lines_[step(chosen_line(), lines_.size())].ranks.front();
}

Screen::Wish Screen::press(const Key& key) {
  // In the filter, letters are text and not commands.
  if (types_filter_) {
    press_in_filter(key);
    lines_ = lines_of(job_, rules_);
    return Wish::draw;
  }
  // Longer than any table, and far from overflow when a position is added.
  constexpr auto kAll = std::ptrdiff_t{1} << 40;
  const auto page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(height_, 2) - 1);
  switch (key.kind) {
    case Key::Kind::up:
      move(-1);
      return Wish::draw;
    case Key::Kind::down:
      move(1);
      return Wish::draw;
    case Key::Kind::page_up:
      move(-page);
      return Wish::draw;
    case Key::Kind::page_down:
      move(page);
      return Wish::draw;
    case Key::Kind::home:
      move(-kAll);
      return Wish::draw;
    case Key::Kind::end:
      move(kAll);
      return Wish::draw;
    default:
      return shown_rank_ ? press_in_page(key) : press_in_table(key);
  }
}

Screen::Wish Screen::press_in_page(const Key& key) {
  if (key.kind == Key::Kind::text) return press_letter(key.text);
  // Enter, Esc and backspace go back.
  chosen_ = *shown_rank_;
  shown_rank_.reset();
  threads_.clear();
  first_ = 0;
  return Wish::draw;
}

Screen::Wish Screen::press_in_table(const Key& key) {
  if (key.kind == Key::Kind::text) return press_letter(key.text);
  if (key.kind == Key::Kind::escape) rules_.filter.clear();
  lines_ = lines_of(job_, rules_);
  if (key.kind != Key::Kind::enter || lines_.empty()) return Wish::draw;
  // All ranks of a line do the same, so the first rank stands for the line.
  const std::vector<int>& ranks = lines_[chosen_line()].ranks;
  shown_rank_ = std::binary_search(ranks.begin(), ranks.end(), chosen_) ? chosen_ : ranks.front();
  threads_.clear();
  first_ = 0;
  return Wish::ask;
}

Screen::Wish Screen::press_letter(const std::string& letter) {
  if (letter == "q") return Wish::quit;
  if (letter == "j" || letter == "k") {
    move(letter == "j" ? 1 : -1);
    return Wish::draw;
  }
  // The other letters change the table, which the page of a rank covers.
  if (shown_rank_) return Wish::none;
  if (letter == "s")
    rules_.sort =
        static_cast<Sort>((static_cast<std::size_t>(rules_.sort) + 1) % kSortWords.size());
  else if (letter == "f")
    rules_.folds = !rules_.folds;
  else if (letter == "/")
    types_filter_ = true;
  else
    return letter == " " ? Wish::ask : Wish::none;
  // '/' begins a new filter, as in less and top.
  if (types_filter_) rules_.filter.clear();
  lines_ = lines_of(job_, rules_);
  return Wish::draw;
}

void Screen::press_in_filter(const Key& key) {
  if (key.kind == Key::Kind::text && rules_.filter.size() + key.text.size() <= kMostFilter)
    rules_.filter += key.text;
  if (key.kind == Key::Kind::backspace) remove_last_character(rules_.filter);
  if (key.kind == Key::Kind::escape) rules_.filter.clear();
  if (key.kind == Key::Kind::escape || key.kind == Key::Kind::enter) types_filter_ = false;
}

std::vector<ScreenLine> Screen::top_lines() const {
  std::vector<ScreenLine> lines = {{title_of(job_), Style::title}};
  add_words(job_, lines);
  return lines;
}

// All lines below the top: the table without its head, or one rank in full.
std::vector<ScreenLine> Screen::body() const {
  std::vector<ScreenLine> lines;
  if (!shown_rank_) {
    // draw() needs only their number here, and takes the text from the table.
    lines.resize(lines_.size());
    return lines;
  }
  const looks::RankRow* row = find_rank(job_, *shown_rank_);
  if (row == nullptr) return {{fmt::format("no node has a rank {}", *shown_rank_)}};
  for (std::string& line : rank_page(*row, threads_))
    lines.push_back({std::move(line)});
  return lines;
}

std::string Screen::keys_text() const {
  if (types_filter_) return fmt::format("filter: {}_", rules_.filter);
  if (!note_.empty()) return note_;
  if (shown_rank_) return "q quit  Esc back  up/down scroll";
  std::string text = "q quit  Enter rank  s sort  / filter";
  text += fmt::format("  f {}  sorted by {}", rules_.folds ? "unfold" : "fold",
                      kSortWords[static_cast<std::size_t>(rules_.sort)]);
  if (!rules_.filter.empty()) text += fmt::format(", only '{}'", rules_.filter);
  return text;
}

std::vector<ScreenLine> Screen::draw(const ScreenSize& size) {
  if (size.rows == 0 || size.columns == 0) return {};
  const std::vector<ScreenLine> table = table_lines(lines_, size.columns);
  std::vector<ScreenLine> lines = top_lines();
  const std::size_t fixed = shown_rank_ ? 1 : 2;  // the keys, the head of the table
  // On a very low terminal, the ranks count more than the words about them.
  const std::size_t room = size.rows > fixed ? size.rows - fixed : 0;
  lines.resize(std::min(lines.size(), std::max<std::size_t>(room / 2, 1)));
  if (!shown_rank_) lines.push_back(table.front());
  height_ = size.rows > lines.size() + 1 ? size.rows - lines.size() - 1 : 0;
  const std::vector<ScreenLine> all = body();
  const std::size_t chosen = chosen_line();
  const std::size_t last_first = all.size() > height_ ? all.size() - height_ : 0;
  if (!shown_rank_) {
    // The chosen line stays in sight.
    first_ = std::min(first_, chosen);
    if (height_ > 0 && chosen >= first_ + height_) first_ = chosen - height_ + 1;
  }
  first_ = std::min(first_, last_first);
  for (std::size_t i = first_; i < std::min(all.size(), first_ + height_); ++i) {
    if (shown_rank_) {
      lines.push_back(all[i]);
      continue;
    }
    lines.push_back(table[i + 1]);
    if (i == chosen) lines.back().style = Style::chosen;
  }
  if (!shown_rank_ && all.empty() && height_ > 0 && !job_.id.empty())
    lines.push_back({rules_.filter.empty() ? "no rank runs" : "no rank is like that"});
  lines.resize(std::min(lines.size(), size.rows - 1));
  while (lines.size() + 1 < size.rows)
    lines.emplace_back();
  lines.push_back({keys_text(), Style::faint});
  return cut_lines(std::move(lines), size.columns);
}

std::vector<ScreenLine> Screen::draw_once(std::size_t columns) const {
  std::vector<ScreenLine> lines = top_lines();
  std::vector<ScreenLine> rest = shown_rank_ ? body() : table_lines(lines_, columns);
  lines.insert(lines.end(), rest.begin(), rest.end());
  return cut_lines(std::move(lines), columns);
}

}  // namespace lockstep::top
