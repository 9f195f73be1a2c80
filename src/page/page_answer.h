// Where the status page of a node listens: what its agent answers to a command of the same user,
// and what a host passes on to the user's machine. Pure. Holds the token of the page.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::page {

struct PageAnswer {
  std::string node = {};
  int place = 0;             // of the node among those of its Slurm job, told by a login host
  int group_rank = 0;        // of the node, in the last round
  std::string host = {};     // the address that the page is reached at from the node itself
  int port = 0;              // 0: this node serves no page
  std::string token = {};    // of 16 bytes or more
  std::string refusal = {};  // why no page was opened; "": another node was asked for

  bool serves() const { return port != 0; }
  friend bool operator==(const PageAnswer&, const PageAnswer&) = default;
};

std::string page_answer_json(const PageAnswer& answer);
// Reads the answer of a host that may be hostile: a page that is served has an address, a port and
// a token that are safe inside a URL. Fails with Errc::corrupt.
Result<PageAnswer> read_page_answer(std::string_view text);

// Returns whether an equal answer is in the list.
bool is_known(const std::vector<PageAnswer>& answers, const PageAnswer& answer);

// Returns "http://HOST:PORT/?token=TOKEN". host: "127.0.0.1".
std::string page_address(std::string_view host, int port, std::string_view token);

}  // namespace lockstep::page
