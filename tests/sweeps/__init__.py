"""Every public function against one question at a time: does this hold for all?"""
