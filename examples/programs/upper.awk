{ print toupper($0); fflush() }
