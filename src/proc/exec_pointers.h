// Words in the form that exec takes.
#pragma once

#include <string>
#include <vector>

namespace lockstep::proc {

// Returns pointers to the words and a null pointer at the end. Keep the words alive meanwhile: exec
// only reads the words, although its type does not say so.
inline std::vector<char*> exec_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace lockstep::proc
