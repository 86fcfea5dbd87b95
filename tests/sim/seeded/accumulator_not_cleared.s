; fault: uninitialised_register at 9
; launch: 1 | 64 | f32(64), zeros(64)
; a sum begins with what is in the register
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v3, v3, v2
	global_store_dword v1, v3, s[6:7]
