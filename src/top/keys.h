// The keys of a terminal, from its bytes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::top {

struct Key {
  enum class Kind { text, up, down, page_up, page_down, home, end, enter, escape, backspace };
  Kind kind = Kind::text;
  std::string text = {};  // Kind::text: one printable character

  friend bool operator==(const Key&, const Key&) = default;
};

class KeyReader {
 public:
  // Keeps a sequence or character that is not complete yet. Unknown sequences, mouse reports for
  // example, are no keys. An escape at the end of the bytes is the key Esc.
  std::vector<Key> feed(std::string_view bytes);

 private:
  std::string held_;
};

}  // namespace lockstep::top
