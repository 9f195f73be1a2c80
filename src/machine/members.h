// Writes and reads values as the members of a flat JSON object. One list of names and places serves
// both directions. Pure.
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

// Adds the members to `into`, next to what it has.
void print_members(std::span<const Member> members, nlohmann::ordered_json& into);
// Reads the members. A missing or wrongly typed one becomes "" or 0; a flag keeps its value.
void read_members(const nlohmann::json& object, std::span<const Member> members);

}  // namespace lockstep::machine
