// Where a thread is, as a person wants to read it: the innermost line of the user's own code, and
// the library function below.
#pragma once

#include "stacks/stack.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::looks {

// Bounded and printable: names of files and functions come from the worker's memory.
struct Place {
  std::string line = {};      // "train.py:88"
  std::string function = {};  // "step"
  std::string library = {};   // "torch/autograd/graph.py"; "": the user's own code is innermost

  friend bool operator==(const Place&, const Place&) = default;
};

// Returns the innermost frame of the user's code. Without one, the innermost frame. Empty without
// frames.
Place place_of(const stacks::ThreadStack& stack);

// Returns the path of a library's file from its package on: "torch/utils/data/dataloader.py".
// nullopt: the user's own file.
std::optional<std::string_view> library_path(std::string_view file);

// Returns the last component of a qualified name: "step" of "Model.train.<locals>.step".
std::string_view last_name(std::string_view function);

// Returns a number that is equal for equal stacks, also on hosts that keep their libraries in
// different folders. 0: no frames.
std::uint64_t stack_key(const stacks::ThreadStack& stack);

}  // namespace lockstep::looks
