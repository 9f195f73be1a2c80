// Values that go to another process as the members of a flat JSON object: one list of places serves
// reading and printing. Pure.
#pragma once

#include "codec/json.h"

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::machine {

struct Member {
  enum class Kind { text, number, small, flag };

  Member(const char* n, std::string& at) : name(n), text(&at) {}
  Member(const char* n, std::int64_t& at) : name(n), kind(Kind::number), number(&at) {}
  Member(const char* n, int& at) : name(n), kind(Kind::small), small(&at) {}
  Member(const char* n, bool& at) : name(n), kind(Kind::flag), flag(&at) {}

  const char* name;
  Kind kind = Kind::text;
  std::string* text = nullptr;
  std::int64_t* number = nullptr;
  int* small = nullptr;
  bool* flag = nullptr;
};

// Beside what the object has already.
void print_members(std::span<const Member> members, nlohmann::ordered_json& into);
// What is missing or of another kind becomes "", 0 or, of flags, stays what it is.
void read_members(const nlohmann::json& object, std::span<const Member> members);

}  // namespace lockstep::machine
