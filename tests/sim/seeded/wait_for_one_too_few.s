; fault: missing_waitcnt at 11
; launch: 1 | 64 | f32(128), zeros(64)
; of two loads only the first is waited for
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	global_load_dword v3, v1, s[4:5] offset:256
	s_waitcnt vmcnt(1)
	v_add_f32_e32 v4, v2, v2
	v_add_f32_e32 v4, v4, v3
	global_store_dword v1, v4, s[6:7]
