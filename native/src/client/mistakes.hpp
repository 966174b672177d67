// Texts that describe how the two ends differ. messages.md, 2.1.
#pragma once

#include "src/base/text.hpp"
#include "src/client/bind.hpp"

namespace uplink::detail::client {

// explain_answer describes why a server refuses a request to bind an RPC.
void explain_answer(Text *to, const Schema &s, const BindAnswer &a);

} // namespace uplink::detail::client
