// The screen and the keys of `lockstep top`. Pure: takes rows, keys and sizes, and returns
// lines.
#pragma once

#include "top/job_rows.h"
#include "top/keys.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::top {

enum class Style { plain, title, head, chosen, alarm, attention, faint };

struct ScreenLine {
  std::string text = {};  // printable
  Style style = Style::plain;
};

struct ScreenSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

class Screen {
 public:
  enum class Wish {
    none,
    draw,
    quit,
    ask,  // ask for the rows, and for the threads of shown_rank(), now
  };

  Screen(Sort sort, std::optional<int> rank) : shown_rank_(rank) { rules_.sort = sort; }

  void take(JobRows job);
  void take_threads(int rank, std::string text);
  // Shows a line until the next rows come: no answer, for example.
  void note(std::string text) { note_ = std::move(text); }

  Wish press(const Key& key);
  // The rank that is shown in full. nullopt: the table is shown.
  std::optional<int> shown_rank() const { return shown_rank_; }

  // Returns at most size.rows lines of at most size.columns columns. The last one has the keys.
  std::vector<ScreenLine> draw(const ScreenSize& size);
  // Returns all lines, without a choice and keys.
  std::vector<ScreenLine> draw_once(std::size_t columns) const;

 private:
  Wish press_in_table(const Key& key);
  Wish press_in_page(const Key& key);
  void press_in_filter(const Key& key);
  Wish press_letter(const std::string& letter);
  void move(std::ptrdiff_t by);
  std::size_t chosen_line() const;
  std::vector<ScreenLine> top_lines() const;
  std::vector<ScreenLine> body() const;
  std::string keys_text() const;

  JobRows job_;
  std::vector<Line> lines_;
  LineRules rules_;
  int chosen_ = 0;  // the first rank of the chosen line
  bool types_filter_ = false;
  std::optional<int> shown_rank_;
  std::string threads_;
  std::size_t first_ = 0;   // the first line of the body that is shown
  std::size_t height_ = 1;  // lines of the body when drawn last
  std::string note_ = "asks the job";
};

}  // namespace lockstep::top
