// Which offers a user's wish admits, and in which order they are tried. Pure.
#pragma once

#include "base/error.h"
#include "cloud/gpu.h"
#include "cloud/offer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud {

enum class SpotWish { no, only, prefer };

struct Wish {
  GpuWish gpu;
  int nodes = 1;
  SpotWish spot = SpotWish::no;
  std::vector<std::string> providers = {};  // empty: all
  std::vector<std::string> regions = {};    // empty: all
  std::optional<Micros> max_price = {};     // an hour, of all nodes together, all in
  int disk_gb = 0;                          // 0: what the image needs
  bool guarded = false;  // machines that can't end their own bill have somebody who does
  std::vector<std::string> archs = {"x86_64"};  // that we have a binary for
  std::vector<std::string> types = {};          // as the provider names them; empty: all
};

// What a failure has taught, until it is old.
struct Block {
  enum class Kind { capacity, quota, unhealthy };

  Kind kind = Kind::capacity;
  std::string provider;
  std::string region;
  std::string zone = {};  // "": all of the region
  std::string type = {};  // "": all types with GPUs
  bool spot = false;
  std::int64_t until_ms = 0;
  std::string why = {};  // one line
};

inline constexpr std::int64_t kCapacityBlockMs = 10LL * 60'000;
inline constexpr std::int64_t kUnhealthyBlockMs = 60LL * 60'000;
inline constexpr std::int64_t kQuotaBlockMs = 24LL * 60 * 60'000;

bool blocks(const Block& block, const Offer& offer, std::int64_t now_ms);

struct Candidate {
  Offer offer;
  Micros per_hour = 0;     // of all nodes, all in
  std::string doubt = {};  // why it stands behind others that cost more
};

struct LeftOut {
  Offer offer;
  Micros per_hour = 0;
  std::string why;  // "over --max-price 10.00"
};

struct Choice {
  std::vector<Candidate> candidates;  // in the order in which they are tried
  std::vector<LeftOut> left_out;      // of those with the right GPUs, the cheapest first
};

// By what one hour of all nodes really costs. A price that is only built in counts 5 % more than it
// says, so that a live one that is near goes first; of equal prices those in stock go first. Behind
// all others: what has lately been refused, what is known to be sold out, and places whose price is
// no market's. SpotWish::prefer: spot first, where it costs less than the same on demand.
Choice choose(const std::vector<Offer>& offers, const Wish& wish, const std::vector<Block>& blocks,
              std::int64_t now_ms);

// What is offered near a wish that nothing was found for: the same GPUs in other numbers, one line
// each, the cheapest of each provider and type.
std::vector<std::string> near_offers(const std::vector<Offer>& offers, const Wish& wish);

// Why nothing was chosen, in one line, and what to do.
Error nothing_found(const Catalog& catalog, const Wish& wish, const Choice& choice);

}  // namespace lockstep::cloud
