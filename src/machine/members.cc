#include "machine/members.h"

#include "codec/json_members.h"

#include <algorithm>
#include <climits>

namespace lockstep::machine {

void print_members(std::span<const Member> members, nlohmann::ordered_json& into) {
  for (const Member& member : members) {
    auto& value = into[member.name];
    switch (member.kind) {
      case Member::Kind::text:
        value = *member.text;
        break;
      case Member::Kind::number:
        value = *member.number;
        break;
      case Member::Kind::small:
        value = *member.small;
        break;
      case Member::Kind::flag:
        value = *member.flag;
        break;
    }
  }
}

void read_members(const nlohmann::json& object, std::span<const Member> members) {
  for (const Member& member : members) {
    const std::int64_t number =
        member.kind == Member::Kind::number || member.kind == Member::Kind::small
            ? codec::integer_member(object, member.name)
            : 0;
    switch (member.kind) {
      case Member::Kind::text:
        *member.text = codec::text_member(object, member.name);
        break;
      case Member::Kind::number:
        *member.number = number;
        break;
      case Member::Kind::small:
        *member.small = static_cast<int>(std::clamp<std::int64_t>(number, INT_MIN, INT_MAX));
        break;
      case Member::Kind::flag:
        if (const auto at = object.find(member.name); at != object.end() && at->is_boolean())
          *member.flag = at->get<bool>();
        break;
    }
  }
}

}  // namespace lockstep::machine
