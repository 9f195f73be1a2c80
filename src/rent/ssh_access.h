// Access to the ssh port of rented machines: finds this machine's public address, and sets the
// providers' rules that open the port to this address only.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "cloud/web.h"

#include <functional>
#include <string>

namespace lockstep::rent {

class OnDemand;

// Returns this machine's public address, "198.51.100.7/32". unavailable: it was not found out.
Result<std::string> own_address(cloud::Web& web);
// Returns the address that may log in to machines of this wish: this machine's public address, or
// any address if no provider of the wish can close port 22.
Result<std::string> address_for(OnDemand& world, const cloud::Wish& wish);
// Returns whether the rental's machines admit that address.
bool lets_in(const cloud::Rental& rental, const std::string& address);

// Opens the ssh port of machines rented from another address to `address`. tell: called with a line
// for people if the address is new. denied: --allow-from fixed the address.
Status follow_address(OnDemand& world, cloud::Rental& rental, const std::string& address,
                      const std::function<void(const std::string& line)>& tell);
// Opens the ssh port to `address`, whatever the rental's terms say.
Status open_to(OnDemand& world, cloud::Rental& rental, const std::string& address);

// Returns the provider and region of an attempt that may have machines: "AWS EC2 us-east-1".
std::string rented_where(const OnDemand& world, const cloud::Rental& rental);

}  // namespace lockstep::rent
